/** A key as both protocols name it: X11 keysym, and the XT scancode of the QEMU extension (0: none). */
export interface Key {
  keysym: number;
  scancode: number;
}

const named = (keysym: number, scancode: number): Key => ({ keysym, scancode });
export const KEYS = {
  backspace: named(0xff08, 0x0e),
  tab: named(0xff09, 0x0f),
  enter: named(0xff0d, 0x1c),
  escape: named(0xff1b, 0x01),
  home: named(0xff50, 0xc7),
  left: named(0xff51, 0xcb),
  up: named(0xff52, 0xc8),
  right: named(0xff53, 0xcd),
  down: named(0xff54, 0xd0),
  shift: named(0xffe1, 0x2a),
  control: named(0xffe3, 0x1d),
} as const;

/** Rows of a US keyboard from their first scancode on, without and with shift. */
const ROWS: readonly (readonly [number, string, string])[] = [
  [0x02, '1234567890-=', '!@#$%^&*()_+'],
  [0x10, 'qwertyuiop[]', 'QWERTYUIOP{}'],
  [0x1e, "asdfghjkl;'`", 'ASDFGHJKL:"~'],
  [0x2b, '\\zxcvbnm,./', '|ZXCVBNM<>?'],
  [0x39, ' ', ' '],
];
const scancodes = new Map<string, { scancode: number; shift: boolean }>();
for (const [first, plain, shifted] of ROWS) {
  [...shifted].forEach((char, i) => scancodes.set(char, { scancode: first + i, shift: true }));
  [...plain].forEach((char, i) => scancodes.set(char, { scancode: first + i, shift: false }));
}

/** The key that types a character, and whether shift is held; null for what a US keyboard lacks. */
export function keyOf(char: string): { key: Key; shift: boolean } | null {
  if (char === '\n') return { key: KEYS.enter, shift: false };
  if (char === '\t') return { key: KEYS.tab, shift: false };
  const found = scancodes.get(char);
  if (found === undefined) return null;
  return { key: { keysym: char.codePointAt(0)!, scancode: found.scancode }, shift: found.shift };
}
