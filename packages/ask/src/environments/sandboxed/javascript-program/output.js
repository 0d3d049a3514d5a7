/** What a cell (a program of the model) prints: kept up to a limit, and cut to what the model sees. */
({ outputMax, keptMax }) => {
  /** Characters after which pieces of output become one string. */
  const JOIN_AT = 65_536;

  const gap = (characters, what) =>
    `\n… ${characters.toLocaleString('en-US')} characters ${what} …\n`;

  /** Head, a line that counts what is missing and says where it is, tail. */
  const cut = (text, where) => {
    if (text.length <= outputMax) return text;
    let headEnd = Math.ceil(outputMax / 2);
    let tailStart = text.length - Math.floor(outputMax / 2);
    // do not cut a pair of surrogates
    if ((text.charCodeAt(headEnd - 1) & 0xfc00) === 0xd800) headEnd -= 1;
    if ((text.charCodeAt(tailStart) & 0xfc00) === 0xdc00) tailStart += 1;
    return (
      text.slice(0, headEnd) + gap(tailStart - headEnd, `left out${where}`) + text.slice(tailStart)
    );
  };

  /** Keeps `keptMax` characters and the end. `tell` gets the head at once, in case this process dies. */
  const collect = (tell) => {
    let kept = '';
    let piece = '';
    let tail = '';
    let total = 0;
    let told = 0;
    return {
      add(text) {
        if (told < outputMax / 2) {
          const head = text.slice(0, Math.ceil(outputMax / 2) - told);
          told += head.length;
          tell(head);
        }
        total += text.length;
        const room = Math.max(0, keptMax - kept.length - piece.length);
        piece += room < text.length ? text.slice(0, room) : text;
        if (piece.length > JOIN_AT) {
          piece.charCodeAt(0); // makes the engine join the many small strings of `piece`
          kept += piece;
          piece = '';
        }
        if (room < text.length) tail += text.slice(room);
        if (tail.length > JOIN_AT + 4 * outputMax) tail = tail.slice(-2 * outputMax);
      },
      whole() {
        const lost = total - kept.length - piece.length - tail.length;
        return kept + piece + (lost === 0 ? '' : gap(lost, 'were not kept')) + tail;
      },
    };
  };

  return { collect, cut };
};
