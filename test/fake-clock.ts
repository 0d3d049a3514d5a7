/** The clock that tests move by hand, as users of `pawl/testing` get it. */
export { type FakeClock, fakeClock } from '../packages/pawl/src/testing.js';
