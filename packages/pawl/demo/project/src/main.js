import { formatCents, parseCents } from './money.js';
import { splitBill } from './split.js';

const [amount = '0', ...people] = process.argv.slice(2);
const shares = splitBill(parseCents(amount), people.length);
people.forEach((name, index) => console.log(`${name} pays ${formatCents(shares[index])}`));
