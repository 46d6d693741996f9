/* What is on a phone: from a seed, and then as a task wants it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "phone.h"

static const char *const NAMES[CONTACTS_N] = {"ada", "bruno", "clara", "david", "elena", "felix", "greta", "hugo",
                                              "ines", "jonas", "kira", "leon", "maria", "nora", "oscar", "paula"};
static const char *const THINGS[TASKS_N] = {"water plants", "pay rent", "buy bread", "call bank",
                                            "wash car", "read book", "clean desk", "book train"};
static const char *const GOODS[ITEMS_N] = {"lamp", "chair", "kettle", "mirror", "basket", "clock", "pillow", "carpet"};

static unsigned state;
static unsigned draw_number(unsigned n) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

void reset_phone(unsigned seed) {
  state = seed;
  memset(&phone, 0, sizeof phone);
  phone.theme = (int)(seed & 3);
  phone.quantity = 1;
  for (int i = 0; i < SETTINGS_N; i++) phone.settings[i] = (int)draw_number(2);
  for (phone.contacts_n = 0; phone.contacts_n < CONTACTS_N; phone.contacts_n++) {
    struct contact *c = &phone.contacts[phone.contacts_n];
    snprintf(c->name, TEXT, "%s", NAMES[phone.contacts_n]);
    snprintf(c->number, TEXT, "%u", 2000 + draw_number(8000));
  }
  for (phone.tasks_n = 0; phone.tasks_n < TASKS_N; phone.tasks_n++) {
    snprintf(phone.tasks[phone.tasks_n].name, TEXT, "%s", THINGS[phone.tasks_n]);
    phone.tasks[phone.tasks_n].on = (int)draw_number(2);
  }
  for (phone.alarms_n = 0; phone.alarms_n < ALARMS_N; phone.alarms_n++) {
    snprintf(phone.alarms[phone.alarms_n].name, TEXT, "%d:%02d", 5 + phone.alarms_n, 15 * (int)draw_number(4));
    phone.alarms[phone.alarms_n].on = (int)draw_number(2);
  }
  for (phone.items_n = 0; phone.items_n < ITEMS_N; phone.items_n++) {
    snprintf(phone.items[phone.items_n].name, TEXT, "%s", GOODS[phone.items_n]);
    phone.items[phone.items_n].price = 10 + (int)draw_number(90);
  }
}

static int slot(const char *text, int most, int *n) {
  int i = text == NULL ? -1 : atoi(text);
  if (i < 0 || i >= most || i > *n) return -1;
  if (i == *n) *n = i + 1;
  return i;
}

static void copy(char *to, const char *from) {
  snprintf(to, TEXT, "%s", from == NULL ? "" : from);
}

/*
 * `setting I 0|1`, `contact I NUMBER FAVORITE NAME`, `note I TEXT`, `counter N`, `task I 0|1 TEXT`, `alarm I 0|1 TIME`,
 * `item I PRICE NAME`, `last I TEXT`, `count KIND N`: the last shortens a list.
 */
const char *set_phone(char *line) {
  char *rest = line;
  const char *kind = strsep(&rest, " ");
  if (strcmp(kind, "counter") == 0 && rest != NULL) {
    phone.counter = atoi(rest);
    return NULL;
  }
  const char *first = strsep(&rest, " ");
  if (first == NULL || rest == NULL) return "wanted a kind, an index and a value";
  int n = 0, i;
  if (strcmp(kind, "setting") == 0) {
    n = SETTINGS_N;
    if ((i = slot(first, SETTINGS_N, &n)) < 0) return "no such setting";
    phone.settings[i] = atoi(rest) != 0;
  } else if (strcmp(kind, "contact") == 0) {
    if ((i = slot(first, CONTACTS_N, &phone.contacts_n)) < 0) return "no such contact";
    struct contact *c = &phone.contacts[i];
    memset(c, 0, sizeof *c);
    copy(c->number, strsep(&rest, " "));
    c->favorite = rest != NULL && atoi(strsep(&rest, " ")) != 0;
    copy(c->name, rest);
  } else if (strcmp(kind, "last") == 0) {
    if ((i = slot(first, phone.contacts_n, &phone.contacts_n)) < 0) return "no such contact";
    copy(phone.contacts[i].last, rest);
  } else if (strcmp(kind, "note") == 0) {
    if ((i = slot(first, NOTES_N, &phone.notes_n)) < 0) return "no such note";
    copy(phone.notes[i].name, rest);
  } else if (strcmp(kind, "task") == 0) {
    if ((i = slot(first, TASKS_N, &phone.tasks_n)) < 0) return "no such task";
    phone.tasks[i].on = atoi(strsep(&rest, " ")) != 0;
    copy(phone.tasks[i].name, rest);
  } else if (strcmp(kind, "alarm") == 0) {
    if ((i = slot(first, ALARMS_N, &phone.alarms_n)) < 0) return "no such alarm";
    phone.alarms[i].on = atoi(strsep(&rest, " ")) != 0;
    copy(phone.alarms[i].name, rest);
  } else if (strcmp(kind, "item") == 0) {
    if ((i = slot(first, ITEMS_N, &phone.items_n)) < 0) return "no such item";
    memset(&phone.items[i], 0, sizeof phone.items[i]);
    phone.items[i].price = atoi(strsep(&rest, " "));
    copy(phone.items[i].name, rest);
  } else if (strcmp(kind, "count") == 0) {
    n = atoi(rest);
    int *of = strcmp(first, "contact") == 0 ? &phone.contacts_n : strcmp(first, "note") == 0 ? &phone.notes_n
            : strcmp(first, "task") == 0    ? &phone.tasks_n    : strcmp(first, "item") == 0 ? &phone.items_n
                                                                                             : NULL;
    if (of == NULL || n < 0 || n > *of) return "no such list, or it is shorter already";
    *of = n;
  } else {
    return "no such kind";
  }
  return NULL;
}
