import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Environment, EnvironmentKind, SubcallAnswerer } from '../../src/ports.js';
import { echo, runCell, withEnvironment } from './conformance.js';

/** Deadlines, signals and what happens in which order. */

const never: SubcallAnswerer = () => new Promise(() => undefined);

const after =
  (delayMs: number, answer: SubcallAnswerer): SubcallAnswerer =>
  async (subcall) => {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    return answer(subcall);
  };

/** `shared`: the environment of all rows, for tests that leave it as it was. */
export const timeTests = (kind: EnvironmentKind, shared: () => Environment): void => {
  const inShared = (look: (environment: Environment) => Promise<void>) => look(shared());

  const loop = kind.language === 'javascript' ? 'for (;;);' : 'while True: pass';

  it('time in which a cell waits for its calls does not count for its deadline', () =>
    inShared(async (environment) => {
      const code = 'print(llm_query("a"), llm_query("b"))';
      const report = await runCell(environment, code, {
        deadlineMs: 1_900,
        answer: after(2_000, echo),
      });
      assert.equal(report.status, 'ok', report.stderr);
      assert.equal(report.stdout, 'llm: a llm: b\n');
    }));

  it('a signal stops a cell that computes, and one that waits for a call; variables stay', () =>
    inShared(async (environment) => {
      await runCell(environment, 'kept = 1');
      const computing = new AbortController();
      setTimeout(() => computing.abort(), 100);
      const stopped = await runCell(environment, loop, { signal: computing.signal });
      assert.equal(stopped.status, 'stopped');
      const waiting = new AbortController();
      const asked: SubcallAnswerer = (subcall) => {
        setTimeout(() => waiting.abort(), 50);
        return never(subcall);
      };
      const left = await runCell(environment, 'llm_query("a")', {
        signal: waiting.signal,
        answer: asked,
      });
      assert.equal(left.status, 'stopped');
      assert.equal((await runCell(environment, 'print(kept)')).stdout, '1\n');
    }));

  it('code that catches everything does not go on after its signal', () =>
    inShared(async (environment) => {
      const signals = new AbortController();
      let calls = 0;
      const answer: SubcallAnswerer = (subcall) => {
        calls += 1;
        setTimeout(() => signals.abort(), 50);
        return never(subcall);
      };
      const code =
        kind.language === 'javascript'
          ? 'try { llm_query("a") } catch {}\ntry { llm_query("b") } catch {}'
          : 'try:\n    llm_query("a")\nexcept Exception:\n    pass\ntry:\n    llm_query("b")\nexcept Exception:\n    pass';
      const report = await runCell(environment, code, { signal: signals.signal, answer });
      assert.ok(report.status === 'stopped' || report.status === 'died');
      assert.equal(calls, 1);
    }));

  it('a cell whose signal is given already does not run', () =>
    inShared(async (environment) => {
      const report = await runCell(environment, 'ran = 1', { signal: AbortSignal.abort() });
      assert.equal(report.status, 'stopped');
      assert.ok(!report.variables.some(({ name }) => name === 'ran'));
    }));

  it('a signal after the end of a cell stops nothing of the next', () =>
    inShared(async (environment) => {
      const signals = new AbortController();
      await runCell(environment, 'print(1)', { signal: signals.signal });
      const next = runCell(environment, 'print(llm_query("a"))', { answer: after(200, echo) });
      signals.abort();
      assert.equal((await next).stdout, 'llm: a\n');
    }));

  it('#223 an answer that comes after its cell was stopped is not delivered to the next cell', () =>
    inShared(async (environment) => {
      const signals = new AbortController();
      let answerLate: (texts: readonly string[]) => void = () =>
        assert.fail('the first cell has not asked');
      const first = await runCell(environment, 'print(llm_query("old"))', {
        signal: signals.signal,
        answer: () => {
          setTimeout(() => signals.abort(), 50);
          return new Promise((resolve) => {
            answerLate = resolve;
          });
        },
      });
      assert.equal(first.status, 'stopped');
      const second = await runCell(environment, 'print(llm_query("new"), llm_query("newer"))', {
        answer: async (subcall) => {
          answerLate(['late']);
          return after(100, echo)(subcall);
        },
      });
      assert.equal(second.stdout, 'llm: new llm: newer\n');
    }));

  it('an answer that comes while the environment is replaced, or after it was closed, harms nothing', () =>
    withEnvironment(kind, [], async (environment) => {
      const signals = new AbortController();
      let answerLate: (texts: readonly string[]) => void = () =>
        assert.fail('the cell has not asked');
      await runCell(environment, 'llm_query("old")', {
        signal: signals.signal,
        answer: () => {
          setTimeout(() => signals.abort(), 50);
          return new Promise((resolve) => {
            answerLate = resolve;
          });
        },
      });
      await environment.close();
      answerLate(['late']);
      await new Promise((resolve) => setImmediate(resolve));
    }));

  it('one cell at a time: another one is refused, and the first goes on', () =>
    inShared(async (environment) => {
      const first = runCell(environment, 'print(llm_query("a"))', { answer: after(200, echo) });
      await assert.rejects(runCell(environment, 'print(2)'), /one cell at a time/);
      assert.equal((await first).stdout, 'llm: a\n');
    }));

  it('closing ends a cell that runs; afterwards there is nothing to run in, and closing again is no fault', () =>
    withEnvironment(kind, [], async (environment) => {
      const running = runCell(environment, loop);
      setTimeout(() => void environment.close(), 100);
      const report = await running;
      assert.equal(report.status, 'died');
      await assert.rejects(runCell(environment, 'print(1)'), /closed/);
      await assert.rejects(environment.read('x'), /closed/);
      await environment.close();
    }));
};
