/**
 * Tasks of two apps, each made of two templates of one app: its first half, then its second. The halves never type into
 * the same field, and their combinations are cut to a few values each, so that a pair stays as small as its halves.
 */
export const PAIRS: readonly (readonly [string, string])[] = [
  // Two short halves.
  ['bank-freeze', 'contact-call'],
  ['fitness-remind', 'music-play'],
  ['house-lamp', 'toggle-dark'],
  ['house-heater', 'city-delete'],
  ['toggle-bluetooth', 'gallery-favourite'],
  ['alarm-toggle', 'house-fan'],
  ['music-play', 'todo-remind'],
  ['level-volume', 'music-favourite'],
  // A short and a longer one.
  ['toggle-location', 'maps-directions'],
  ['toggle-airplane', 'travel-buy'],
  ['todo-delete', 'shop-cart'],
  ['contact-call', 'city-add'],
  ['note-delete', 'todo-add'],
  ['event-delete', 'fitness-add'],
  ['alarm-add', 'fitness-remind'],
  ['bank-freeze', 'shop-buy'],
  ['house-warmth', 'alarm-add'],
  ['gallery-delete', 'note-write'],
  ['city-add', 'todo-level'],
  ['maps-delete', 'city-delete'],
  // Two longer ones.
  ['travel-buy', 'fitness-remind'],
  ['travel-buy', 'todo-delete'],
  ['food-add', 'todo-delete'],
  ['food-buy', 'contact-call'],
  ['gallery-share', 'message-send'],
  ['contact-add', 'alarm-toggle'],
  ['bank-send', 'message-send'],
  ['bank-send', 'city-add'],
  ['shop-cart', 'bank-send'],
  ['todo-add', 'alarm-add'],
  ['maps-directions', 'message-send'],
  ['event-add', 'bank-freeze'],
  // A half that needs the user.
  ['bank-ask', 'toggle-silent'],
  ['maps-ask', 'music-play'],
  ['travel-ask-day', 'alarm-toggle'],
  ['todo-ask', 'bank-freeze'],
  ['shop-ask', 'bank-freeze'],
];
