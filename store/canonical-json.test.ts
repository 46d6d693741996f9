import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';

describe('canonicalJson', () => {
  it('sorts keys at every depth and leaves out undefined', () => {
    expect(canonicalJson({ b: [{ d: 1, c: null }], a: 'x', u: undefined })).toBe('{"a":"x","b":[{"c":null,"d":1}]}');
  });

  it('says where a number is not finite', () => {
    expect(() => canonicalJson({ a: [1, NaN] })).toThrow(/\$\.a\[1\] is NaN/);
    expect(() => canonicalJson({ a: new Map() })).toThrow(/object of a class/);
  });

  it('is JSON with the same value, and equal for equal values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        const back = JSON.parse(text) as unknown;
        expect(canonicalJson(back)).toBe(text);
        expect(back).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.integer()), (record) => {
        const turned = Object.fromEntries(Object.entries(record).reverse());
        expect(canonicalJson(turned)).toBe(canonicalJson(record));
      }),
    );
  });
});
