/** A whole number as people read it, 1,234,567. The platform's own formatter takes 16 ms to load at its first use. */
export const groupDigits = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
