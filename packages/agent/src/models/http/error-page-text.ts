/** Characters of an unexpected answer that are shown. */
const SHOWN_MAX = 160;

/** The text in one line, shortened. */
export const shorten = (text: string): string => {
  const words = text.replace(/\s+/g, ' ').trim();
  return words.length > SHOWN_MAX ? `${words.slice(0, SHOWN_MAX)}…` : words;
};

/** The title of an HTML page, or its first words. */
export const pageWords = (page: string): string => {
  const title = /<title[^>]*>([^<]*)</i.exec(page)?.[1];
  return shorten(title ?? page.replace(/<(script|style)[\s\S]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' '));
};
