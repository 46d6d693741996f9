/** `sha256:` reference to a blob in the store. */
export type BlobRef = `sha256:${string}`;

/** Axis-aligned rectangle in the screen's coordinate space. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface Point {
  x: number;
  y: number;
}

/** What an outline element is; `label` is plain text that cannot be acted on. */
export type Role =
  'button' | 'row' | 'switch' | 'checkbox' | 'radio' | 'field' | 'tab' | 'link' | 'icon' | 'slider' | 'label';

/** One visible element, in reading order. */
export interface OutlineElement {
  role: Role;
  /** Lower-case words as shown to the user; unique on a screen wherever the backend can make it so. */
  label: string;
  /** Current value: `on`/`off` for switches, the typed text for fields, detail text for rows. */
  value?: string;
  box: Box;
  focused?: boolean;
}

/** One observation of a device. No clock in it: the same state gives the same Screen. */
export interface Screen {
  /** PNG in the store, or null when the run keeps no pixels for this phase (`devices.keepScreens`). */
  png: BlobRef | null;
  width: number;
  height: number;
  /** Device pixels per unit of `space`. */
  scale: number;
  space: 'pixel' | 'point' | 'unit';
  /** Grows with every new frame of the device in one episode; starts at 0 after rollback. */
  frame: number;
  /** 64-bit perceptual hash, 16 hex digits, status bar cropped (algorithms.md, 11). */
  hash: string;
  degenerate: boolean;
  /** Title of the app or page in front; null when unknown. */
  app: string | null;
  outline: OutlineElement[] | null;
}
