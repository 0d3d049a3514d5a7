/** A key, independent of the terminal's encoding. */
export type Key = {
  /** A lower-case character, or a name such as `enter`, `escape`, `backspace`, `up`, `pageup`, `f1`; empty for text. */
  readonly name: string;
  /** Text that the key types; empty for other keys. */
  readonly text: string;
  readonly control: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
};

/** Input from the keyboard: one key, or a whole paste. */
export type Pressed =
  | { readonly kind: 'key'; readonly key: Key }
  | { readonly kind: 'paste'; readonly text: string };

export type Modifiers = Pick<Key, 'control' | 'alt' | 'shift'>;

export const NO_MODIFIERS: Modifiers = { control: false, alt: false, shift: false };

export const namedKey = (name: string, modifiers: Modifiers = NO_MODIFIERS): Key => ({
  name,
  text: '',
  ...modifiers,
});

export const textKey = (text: string): Key => ({ name: '', text, ...NO_MODIFIERS });
