#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "phone.h"

struct phone phone;
long events;

const char *const APP_NAMES[APPS] = {"home",  "settings", "contacts", "notes",   "counter",
                                     "tasks", "alarms",   "shop",     "messages"};
const char *const SETTING_NAMES[SETTINGS_N] = {"wifi", "bluetooth", "airplane mode", "location", "dark mode", "battery saver"};

enum act { NOTHING, OPEN_APP, BACK, TOGGLE, OPEN, NEW, SAVE, DELETE, DELETE_NOW, CALL, PLUS, MINUS, ZERO, FOCUS, SEND,
           OPEN_CART, ADD_TO_CART, CHECKOUT };

static int count;
static struct element *list;

static struct element *put(enum role role, const char *label, const char *value, int act, int arg) {
  struct element *e = &list[count++];
  memset(e, 0, sizeof *e);
  e->role = role;
  snprintf(e->label, TEXT, "%s", label);
  snprintf(e->value, TEXT, "%s", value);
  e->act = act;
  e->arg = arg;
  return e;
}

/* Rows are placed from the header down; those scrolled away are left out, and so are those below the end. */
static int line_at;
static void line(enum role role, const char *label, const char *value, int act, int arg) {
  int at = line_at++ - phone.scroll;
  if (at < 0 || at >= body_rows()) return;
  struct element *e = put(role, label, value, act, arg);
  e->x = role == BUTTON ? 64 : 12;
  e->w = WIDTH - 2 * e->x;
  e->y = STATUS + HEADER + at * ROW + 6;
  e->h = ROW - 12;
  e->focused = role == FIELD && phone.focused;
}
static const char *number(int n) {
  static char text[16];
  snprintf(text, sizeof text, "%d", n);
  return text;
}
static const char *onoff(int on) { return on ? "on" : "off"; }

int body_rows(void) { return (HEIGHT - STATUS - HEADER) / ROW; }

const char *title(void) {
  if (phone.page == DETAIL && phone.app == CONTACTS) return phone.contacts[phone.index].name;
  if (phone.page == DETAIL && phone.app == MESSAGES) return phone.contacts[phone.index].name;
  if (phone.page == DETAIL && phone.app == SHOP) return phone.items[phone.index].name;
  if (phone.page == EDIT) return "new note";
  if (phone.page == CONFIRM) return "are you sure";
  if (phone.page == CART) return "cart";
  if (phone.page == ORDERED) return "thank you";
  return APP_NAMES[phone.app];
}

static int cart_count(void) {
  int n = 0;
  for (int i = 0; i < phone.items_n; i++) n += phone.items[i].cart;
  return n;
}

static void home(void) {
  for (int i = 1; i < APPS; i++) {
    /* Another theme has another order: a habit of places does not carry over. */
    int at = phone.theme == 3 ? APPS - 1 - i : (i - 1 + 3 * phone.theme) % (APPS - 1);
    struct element *e = put(ICON, APP_NAMES[i], "", OPEN_APP, i);
    e->x = 24 + (at % 2) * 176;
    e->y = STATUS + 40 + (at / 2) * 180;
    e->w = 160;
    e->h = 150;
  }
}

static void detail(void) {
  int i = phone.index;
  switch (phone.app) {
    case CONTACTS:
      line(LABEL, "number", phone.contacts[i].number, NOTHING, 0);
      line(SWITCH, "favorite", onoff(phone.contacts[i].favorite), TOGGLE, i);
      line(BUTTON, "call", "", CALL, i);
      line(BUTTON, "delete contact", "", DELETE, i);
      break;
    case NOTES:
      line(LABEL, phone.notes[i].name, "", NOTHING, 0);
      line(BUTTON, "delete note", "", DELETE, i);
      break;
    case SHOP:
      line(LABEL, "price", number(phone.items[i].price), NOTHING, 0);
      line(LABEL, "quantity", number(phone.quantity), NOTHING, 0);
      line(BUTTON, "more", "", PLUS, i);
      line(BUTTON, "less", "", MINUS, i);
      line(BUTTON, "add to cart", "", ADD_TO_CART, i);
      break;
    default:
      line(LABEL, "last message", phone.contacts[i].last, NOTHING, 0);
      line(FIELD, "message", phone.draft, FOCUS, 0);
      line(BUTTON, "send", "", SEND, i);
  }
}

static void listing(void) {
  switch (phone.app) {
    case SETTINGS:
      for (int i = 0; i < SETTINGS_N; i++) line(SWITCH, SETTING_NAMES[i], onoff(phone.settings[i]), TOGGLE, i);
      break;
    case CONTACTS:
    case MESSAGES:
      for (int i = 0; i < phone.contacts_n; i++) line(ROW_ITEM, phone.contacts[i].name, "", OPEN, i);
      break;
    case NOTES:
      line(BUTTON, "new note", "", NEW, 0);
      for (int i = 0; i < phone.notes_n; i++) line(ROW_ITEM, phone.notes[i].name, "", OPEN, i);
      break;
    case COUNTER:
      line(LABEL, "value", number(phone.counter), NOTHING, 0);
      line(BUTTON, "plus", "", PLUS, 0);
      line(BUTTON, "minus", "", MINUS, 0);
      line(BUTTON, "clear", "", ZERO, 0);
      break;
    case TASKS:
      for (int i = 0; i < phone.tasks_n; i++) line(SWITCH, phone.tasks[i].name, onoff(phone.tasks[i].on), TOGGLE, i);
      break;
    case ALARMS:
      for (int i = 0; i < phone.alarms_n; i++) line(SWITCH, phone.alarms[i].name, onoff(phone.alarms[i].on), TOGGLE, i);
      break;
    case SHOP:
      line(ROW_ITEM, "cart", number(cart_count()), OPEN_CART, 0);
      for (int i = 0; i < phone.items_n; i++) line(ROW_ITEM, phone.items[i].name, number(phone.items[i].price), OPEN, i);
      break;
    default:
      break;
  }
}

/* What is on the screen now, in reading order. */
int elements(struct element *out) {
  list = out;
  count = line_at = 0;
  if (phone.app == HOME) {
    home();
    return count;
  }
  struct element *back = put(BUTTON, "back", "", BACK, 0);
  back->x = 12;
  back->y = STATUS + 8;
  back->w = 84;
  back->h = HEADER - 16;
  switch (phone.page) {
    case DETAIL: detail(); break;
    case EDIT:
      line(FIELD, "text", phone.draft, FOCUS, 0);
      line(BUTTON, "save", "", SAVE, 0);
      break;
    case CONFIRM:
      line(BUTTON, "yes delete", "", DELETE_NOW, 0);
      line(BUTTON, "no keep", "", BACK, 0);
      break;
    case CART:
      for (int i = 0; i < phone.items_n; i++)
        if (phone.items[i].cart > 0) line(LABEL, phone.items[i].name, number(phone.items[i].cart), NOTHING, 0);
      if (cart_count() > 0) line(BUTTON, "order now", "", CHECKOUT, 0);
      break;
    case ORDERED: line(LABEL, "orders", number(phone.orders), NOTHING, 0); break;
    default: listing();
  }
  return count;
}

static void go(enum page page, int index) {
  phone.page = page;
  phone.index = index;
  phone.scroll = phone.focused = phone.replace = 0;
  phone.draft[0] = 0;
  phone.quantity = 1;
}

static void back(void) {
  if (phone.page == CONFIRM) go(DETAIL, phone.index);
  else if (phone.page != LIST) go(LIST, 0);
  else key_home();
}

static void toggle(int i) {
  if (phone.app == SETTINGS) phone.settings[i] ^= 1;
  else if (phone.app == TASKS) phone.tasks[i].on ^= 1;
  else if (phone.app == ALARMS) phone.alarms[i].on ^= 1;
  else phone.contacts[i].favorite ^= 1;
}

static void remove_now(void) {
  int i = phone.index;
  if (phone.app == CONTACTS) {
    memmove(&phone.contacts[i], &phone.contacts[i + 1], sizeof(struct contact) * (size_t)(--phone.contacts_n - i));
  } else {
    memmove(&phone.notes[i], &phone.notes[i + 1], sizeof(struct named) * (size_t)(--phone.notes_n - i));
  }
  go(LIST, 0);
}

static void save(void) {
  if (phone.draft[0] != 0 && phone.notes_n < NOTES_N) snprintf(phone.notes[phone.notes_n++].name, TEXT, "%s", phone.draft);
  go(LIST, 0);
}

static void carry_out(const struct element *e) {
  int i = e->arg;
  if (e->act != FOCUS) phone.focused = 0;
  switch (e->act) {
    case OPEN_APP: phone.app = (enum app)i; go(LIST, 0); break;
    case BACK: back(); break;
    case TOGGLE: toggle(i); break;
    case OPEN: go(DETAIL, i); break;
    case NEW: go(EDIT, 0); break;
    case SAVE: save(); break;
    case DELETE: phone.page = CONFIRM; break;
    case DELETE_NOW: remove_now(); break;
    case CALL: phone.calls = 1 + i; break;
    case PLUS: if (phone.app == COUNTER) phone.counter++; else if (phone.quantity < 9) phone.quantity++; break;
    case MINUS: if (phone.app == COUNTER) phone.counter--; else if (phone.quantity > 1) phone.quantity--; break;
    case ZERO: phone.counter = 0; break;
    case FOCUS: phone.focused = phone.replace = 1; break;
    case SEND:
      if (phone.draft[0] != 0) snprintf(phone.contacts[i].last, TEXT, "%s", phone.draft);
      phone.draft[0] = 0;
      break;
    case OPEN_CART: go(CART, 0); break;
    case ADD_TO_CART: phone.items[i].cart += phone.quantity; go(LIST, 0); break;
    case CHECKOUT:
      for (int k = 0; k < phone.items_n; k++) {
        phone.items[k].ordered += phone.items[k].cart;
        phone.items[k].cart = 0;
      }
      phone.orders++;
      go(ORDERED, 0);
      break;
    default: break;
  }
}

void tap(int x, int y) {
  struct element shown[MAX_ELEMENTS];
  int n = elements(shown);
  for (int i = 0; i < n; i++) {
    const struct element *e = &shown[i];
    if (x >= e->x && y >= e->y && x < e->x + e->w && y < e->y + e->h) return carry_out(e);
  }
}

/* A finger that went up shows what is below. */
void swipe(int dy) {
  struct element shown[MAX_ELEMENTS];
  elements(shown);
  int most = line_at > body_rows() ? line_at - body_rows() : 0;
  phone.scroll += dy < 0 ? body_rows() - 2 : 2 - body_rows();
  if (phone.scroll > most) phone.scroll = most;
  if (phone.scroll < 0) phone.scroll = 0;
}

void key_char(char c) {
  if (!phone.focused) return;
  size_t n = phone.replace ? 0 : strlen(phone.draft);
  phone.replace = 0;
  if (n + 1 >= TEXT) return;
  phone.draft[n] = c;
  phone.draft[n + 1] = 0;
}
void key_backspace(void) {
  if (!phone.focused || phone.draft[0] == 0) return;
  phone.draft[phone.replace ? 0 : strlen(phone.draft) - 1] = 0;
  phone.replace = 0;
}
void key_enter(void) { phone.focused = 0; }
void select_all(void) { phone.replace = phone.focused; }
void key_home(void) {
  phone.app = HOME;
  go(LIST, 0);
}
