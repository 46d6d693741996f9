import { describe, expect, it } from 'vitest';
import * as words from './concepts.ts';
import { CONCEPTS, type Concept } from './concepts.ts';
import { freshPhone } from './model.ts';
import { HEIGHT, LAYOUTS, STATUS_BAR, WIDTH, viewOf, word, type Skin, type SkinFamily } from './skin.ts';

const concepts = Object.keys(CONCEPTS) as Concept[];
const seeds = Array.from({ length: 60 }, (_, seed) => seed);

describe('wording', () => {
  it('has five words a concept, all distinct, none of them content', () => {
    const all = concepts.flatMap((concept) => [...CONCEPTS[concept]]);
    expect(all).toHaveLength(5 * concepts.length);
    expect(new Set(all).size).toBe(all.length);
    // Notes and events are labels of two words; the rest of the content are labels as they are.
    const single = [words.NAMES, words.SONGS, words.PRODUCTS, words.CITIES, words.HOURS, words.LEVELS].flat();
    expect(all.filter((label) => single.includes(label))).toEqual([]);
  });

  it('of the unseen family consists of words that wide training skins show too', () => {
    const shown = (family: SkinFamily, concept: Concept): Set<string> =>
      new Set(seeds.map((seed) => word({ family, seed, layout: 0 }, concept)));
    for (const concept of concepts) {
      const wide = shown('ios-alt', concept);
      expect(wide.size).toBe(5);
      expect(shown('ios', concept)).toEqual(new Set(CONCEPTS[concept].slice(0, 3)));
      expect(shown('android', concept)).toEqual(new Set(CONCEPTS[concept].slice(3)));
    }
  });
});

describe('layout', () => {
  const layouts = [...new Set(Object.values(LAYOUTS).flat())];

  it('of the unseen family is never trained on', () => {
    expect(LAYOUTS.android.filter((id) => [...LAYOUTS.ios, ...LAYOUTS['ios-alt']].includes(id))).toEqual([]);
    expect([LAYOUTS.ios.length, LAYOUTS['ios-alt'].length]).toEqual([4, 7]);
  });

  it.each(layouts)('%i keeps boxes on the screen, below the status bar, and apart', (layout) => {
    const skin: Skin = { family: 'ios-alt', seed: 1, layout };
    const data = { contacts: words.NAMES, products: words.PRODUCTS, songs: words.SONGS };
    const home = freshPhone(data);
    const phones = [
      home,
      ...(['contacts', 'shop', 'music', 'settings', 'clock'] as const).flatMap((app) => [
        { ...home, app, stack: ['root'] },
        { ...home, app, stack: ['root', app === 'settings' ? 'network' : 'new'], scroll: 1 },
      ]),
    ].filter((phone) => !(phone.stack[1] === 'new' && ['shop', 'music'].includes(phone.app!)));
    for (const phone of phones) {
      const boxes = viewOf(phone, skin).shown.map((shown) => shown.box);
      for (const [i, a] of boxes.entries()) {
        expect(a.y).toBeGreaterThanOrEqual(STATUS_BAR);
        expect(a.x).toBeGreaterThanOrEqual(0);
        expect(a.x + a.width).toBeLessThanOrEqual(WIDTH);
        expect(a.y + a.height).toBeLessThanOrEqual(HEIGHT);
        for (const b of boxes.slice(i + 1))
          expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y).toBe(
            true,
          );
      }
    }
  });

  it('changes what is where, never what there is', () => {
    const phone = { ...freshPhone({}), app: 'settings' as const, stack: ['root', 'network'] };
    const effects = (layout: number): string[] =>
      viewOf(phone, { family: 'ios', seed: layout, layout })
        .shown.map((shown) => JSON.stringify(shown.item.tap))
        .sort();
    const first = effects(0);
    const orders = layouts.map((layout) => {
      expect(effects(layout)).toEqual(first);
      return viewOf(phone, { family: 'ios', seed: 1, layout })
        .shown.map((s) => JSON.stringify(s.item.tap))
        .join();
    });
    expect(new Set(orders).size).toBeGreaterThan(3);
  });
});
