/* A small phone: its state, its pages, what a touch does. Drawing and the wire are elsewhere. */
#ifndef PHONE_H
#define PHONE_H

#define WIDTH 384
#define HEIGHT 832
#define STATUS 28
#define HEADER 56
#define ROW 64
#define TEXT 40
#define MAX_ELEMENTS 40

enum app { HOME, SETTINGS, CONTACTS, NOTES, COUNTER, TASKS, ALARMS, SHOP, MESSAGES, APPS };
/* What is in front inside of an app. */
enum page { LIST, DETAIL, EDIT, CONFIRM, CART, ORDERED };
enum role { ICON, ROW_ITEM, SWITCH, BUTTON, FIELD, LABEL };

#define SETTINGS_N 6
#define CONTACTS_N 16
#define NOTES_N 8
#define TASKS_N 8
#define ALARMS_N 6
#define ITEMS_N 8

struct contact { char name[TEXT], number[TEXT], last[TEXT]; int favorite; };
struct named { char name[TEXT]; int on; };
struct item { char name[TEXT]; int price, cart, ordered; };

/* All that a rollback brings back and all that the serial port tells. */
struct phone {
  int theme;
  enum app app;
  enum page page;
  int index, scroll, focused, replace, quantity, orders, calls;
  char draft[TEXT];
  int settings[SETTINGS_N];
  struct contact contacts[CONTACTS_N];
  int contacts_n;
  struct named notes[NOTES_N];
  int notes_n;
  int counter;
  struct named tasks[TASKS_N];
  int tasks_n;
  struct named alarms[ALARMS_N];
  int alarms_n;
  struct item items[ITEMS_N];
  int items_n;
};

/* What can be seen and touched; `act` is carried out by a tap on the box. */
struct element {
  enum role role;
  char label[TEXT], value[TEXT];
  int x, y, w, h, focused, act, arg;
};

extern struct phone phone;
/* Input events that arrived since the start: an echo that nobody on the screen sees. */
extern long events;
extern const char *const APP_NAMES[APPS];
extern const char *const SETTING_NAMES[SETTINGS_N];

int elements(struct element *out);
const char *title(void);
int body_rows(void);
void reset_phone(unsigned seed);
/* Returns an error in words, or NULL. */
const char *set_phone(char *line);
void tap(int x, int y);
void swipe(int dy);
void key_char(char c);
void key_backspace(void);
void key_enter(void);
void key_home(void);
void select_all(void);

void draw(unsigned *pixels);
void serve(const char *line, void (*answer)(const char *));
#endif
