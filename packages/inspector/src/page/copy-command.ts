import { button, make } from './dom.js';

/** A command for the shell, with a button that copies it. Where the clipboard is closed to the page, it is selected. */
export const copyCommand = (command: string, about: string): HTMLElement => {
  const code = make('code', { tabindex: 0 }, command);
  const said = make('span', { class: 'faint', role: 'status' });
  const copy = button('Copy', { 'aria-label': `Copy ${command}` }, () => {
    navigator.clipboard?.writeText(command).then(
      () => {
        said.textContent = 'copied';
      },
      () => select(code),
    ) ?? select(code);
  });
  return make('li', { class: 'command' }, make('span', { class: 'faint' }, about), code, copy, said);
};

const select = (element: HTMLElement): void => {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection()?.removeAllRanges();
  getSelection()?.addRange(range);
};
