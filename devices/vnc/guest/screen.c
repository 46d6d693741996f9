/* Draws the phone into 32-bit pixels. The same state gives the same pixels: nothing here reads a clock. */
#include <string.h>
#include "font.h"
#include "phone.h"

struct theme { unsigned ground, card, ink, faint, accent, on; };
static const struct theme THEMES[4] = {
    {0xf2f2f7, 0xffffff, 0x111114, 0x6e6e73, 0x0a6ae6, 0x34a853},
    {0xe9edf4, 0xfdfdff, 0x20242c, 0x5c6574, 0x5e4ce6, 0x2f9e6e},
    {0xfff7ee, 0xffffff, 0x2b1d10, 0x7a6552, 0xc2571a, 0x7a9a01},
    {0x16161a, 0x2a2a30, 0xf4f4f6, 0xa8a8b2, 0x3d7eff, 0x30b158}};
static const unsigned ICONS[APPS] = {0,        0x7a7f87, 0xd9663a, 0xd4a017, 0x3a8fd9,
                                     0x2f9e6e, 0x8e5bd0, 0xc2407a, 0x34a853};

static unsigned *to;

static void fill(int x, int y, int w, int h, unsigned color) {
  for (int j = y; j < y + h; j++) {
    if (j < 0 || j >= HEIGHT) continue;
    for (int i = x; i < x + w; i++)
      if (i >= 0 && i < WIDTH) to[j * WIDTH + i] = color;
  }
}

static unsigned mix(unsigned under, unsigned over, unsigned alpha) {
  unsigned out = 0;
  for (int shift = 0; shift < 24; shift += 8) {
    unsigned a = (under >> shift) & 255, b = (over >> shift) & 255;
    out |= ((a * (255 - alpha) + b * alpha) / 255) << shift;
  }
  return out;
}

static int text_width(const char *text) {
  int w = 0;
  for (; *text != 0; text++)
    if (*text >= FONT_FIRST && *text <= FONT_LAST) w += FONT_ADVANCE[*text - FONT_FIRST];
  return w;
}

/* Left edge at x, middle of the line at y. */
static void text_at(int x, int y, const char *text, unsigned color) {
  for (; *text != 0; text++) {
    if (*text < FONT_FIRST || *text > FONT_LAST) continue;
    int g = *text - FONT_FIRST;
    for (int j = 0; j < FONT_HEIGHT; j++)
      for (int i = 0; i < FONT_WIDTH; i++) {
        unsigned alpha = FONT[g][j * FONT_WIDTH + i];
        int px = x + i - 1, py = y - FONT_HEIGHT / 2 + j;
        if (alpha == 0 || px < 0 || px >= WIDTH || py < 0 || py >= HEIGHT) continue;
        to[py * WIDTH + px] = mix(to[py * WIDTH + px], color, alpha);
      }
    x += FONT_ADVANCE[g];
  }
}
static void centred(int x, int w, int y, const char *text, unsigned color) {
  text_at(x + (w - text_width(text)) / 2, y, text, color);
}

static void element(const struct element *e, const struct theme *t) {
  int middle = e->y + e->h / 2;
  if (e->role == ICON) {
    fill(e->x + 40, e->y, 80, 80, ICONS[e->arg]);
    fill(e->x + 60, e->y + 20, 40, 40, mix(ICONS[e->arg], 0xffffff, 150));
    centred(e->x, e->w, e->y + 112, e->label, t->ink);
    return;
  }
  if (e->role == BUTTON) {
    fill(e->x, e->y, e->w, e->h, t->accent);
    centred(e->x, e->w, middle, e->label, 0xffffff);
    return;
  }
  if (e->role == LABEL) {
    text_at(e->x + 12, middle, e->label, t->faint);
    text_at(e->x + e->w - 12 - text_width(e->value), middle, e->value, t->ink);
    return;
  }
  fill(e->x, e->y, e->w, e->h, t->card);
  text_at(e->x + 12, middle, e->label, t->ink);
  if (e->role == SWITCH) {
    int on = e->value[1] == 'n';
    text_at(e->x + e->w - 112, middle, e->value, on ? t->on : t->faint);
    fill(e->x + e->w - 64, middle - 14, 52, 28, on ? t->on : mix(t->card, t->faint, 110));
    fill(e->x + e->w - (on ? 38 : 62), middle - 12, 24, 24, 0xffffff);
  } else if (e->role == FIELD) {
    fill(e->x, e->y + e->h - 3, e->w, 3, e->focused ? t->accent : t->faint);
    text_at(e->x + e->w - 12 - text_width(e->value), middle, e->value, t->accent);
  } else {
    text_at(e->x + e->w - 12 - text_width(e->value), middle, e->value, t->faint);
  }
}

void draw(unsigned *pixels) {
  const struct theme *t = &THEMES[phone.theme & 3];
  struct element shown[MAX_ELEMENTS];
  to = pixels;
  fill(0, 0, WIDTH, HEIGHT, t->ground);
  /* No clock and no battery that go on: the same state must look the same. */
  text_at(12, STATUS / 2, "9:41", t->ink);
  if (phone.app != HOME) centred(96, WIDTH - 192, STATUS + HEADER / 2, title(), t->ink);
  int n = elements(shown);
  for (int i = 0; i < n; i++) element(&shown[i], t);
}
