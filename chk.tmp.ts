import { readFileSync } from 'node:fs';
import * as F from './scripts/plant/faults.js';
import * as S from './scripts/mutation/survivors.js';
const all: any[] = Object.values(F).flatMap((x: any) => (Array.isArray(x) ? x : []));
let n = 0;
for (const f of all) for (const e of f.edits ?? []) { n++; const t = readFileSync(f.file.startsWith('packages') ? f.file : `packages/agent/src/machine/${f.file}`, 'utf8'); const c = t.split(e.from).length - 1; if (c !== 1) console.log('PLANT', f.file, c, JSON.stringify(e.from)); }
console.log(n, 'edits');
const surv: any[] = Object.values(S).flatMap((x: any) => (Array.isArray(x) ? x : []));
for (const s of surv) { const t = readFileSync(s.file, 'utf8'); const from = s.was; if (typeof from === 'string' && !t.includes(from)) console.log('SURV', s.file, JSON.stringify(from), JSON.stringify(s).slice(0,200)); }
console.log(surv.length, Object.keys(surv[0] ?? {}));
