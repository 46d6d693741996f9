/* The guest's only program: loads a few modules, finds its screen, its touch and its keys, and is a phone from then on. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include "phone.h"

#define MAX_INPUTS 8
static int serial = -1;
static unsigned *display;

/* Only rows that changed are written: what is written is what QEMU sends. */
static void show(void) {
  static unsigned next[WIDTH * HEIGHT], now[WIDTH * HEIGHT];
  static int first = 1;
  if (display == NULL) return;
  draw(next);
  for (int row = 0; row < HEIGHT; row++) {
    unsigned *from = &next[row * WIDTH], *old = &now[row * WIDTH];
    if (!first && memcmp(from, old, WIDTH * 4) == 0) continue;
    memcpy(old, from, WIDTH * 4);
    memcpy(&display[row * WIDTH], from, WIDTH * 4);
  }
  first = 0;
}

static void say(const char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    ssize_t n = write(serial, text, left);
    if (n <= 0) return;
    text += n;
    left -= (size_t)n;
  }
}
/* The screen first: whoever has an answer may look at what it is about. */
static void answer(const char *text) {
  show();
  say(text);
  say("\n");
}
static void die(const char *why) {
  answer(why);
  sync();
  reboot(RB_POWER_OFF);
}

static void load_modules(void) {
  FILE *order = fopen("/modules/order", "r");
  char name[128], path[160];
  if (order == NULL) die("fatal no list of modules");
  while (fscanf(order, "%127s", name) == 1) {
    snprintf(path, sizeof path, "/modules/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) != 0) {
      perror(path);
      die("fatal a module does not load");
    }
    close(fd);
  }
  fclose(order);
}

/* Port of the serial line: no echo, no line editing, bytes as they are. */
static void open_serial(void) {
  struct termios raw;
  serial = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
  if (serial < 0 || tcgetattr(serial, &raw) != 0) return;
  cfmakeraw(&raw);
  cfsetspeed(&raw, B115200);
  tcsetattr(serial, TCSANOW, &raw);
}

static int has(const char *folder, const char *file, const char *word) {
  char path[300], text[32] = "";
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", folder, file);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 && strncmp(text, word, strlen(word)) == 0;
}
static void *map(const char *folder, const char *file, size_t length) {
  char path[300];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", folder, file);
  int fd = open(path, O_RDWR | O_SYNC);
  void *at = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) die("fatal the display cannot be mapped");
  return at;
}

/*
 * QEMU's secondary-vga is two windows on the PCI bus: pixels, and the registers of the other, VGA's own from 0x400, Bochs's
 * from 0x500. A driver of the kernel would cost seven modules and half of the time to the first frame. Not bochs-display:
 * after a loadvm that one goes on showing what was there before.
 */
static unsigned *open_display(void) {
  DIR *bus = opendir("/sys/bus/pci/devices");
  struct dirent *entry;
  while (bus != NULL && (entry = readdir(bus)) != NULL) {
    const char *folder = entry->d_name;
    if (folder[0] == '.' || !has(folder, "vendor", "0x1234") || !has(folder, "device", "0x1111")) continue;
    char path[300];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/enable", folder);
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, "1", 1) != 1) die("fatal the display cannot be enabled");
    close(fd);
    volatile char *window = map(folder, "resource2", 4096);
    volatile unsigned short *registers = (volatile unsigned short *)(window + 0x500);
    enum { XRES = 1, YRES, BPP, ENABLE, BANK, VIRT_WIDTH, VIRT_HEIGHT, X_OFFSET, Y_OFFSET };
    registers[ENABLE] = 0;
    registers[XRES] = registers[VIRT_WIDTH] = WIDTH;
    registers[YRES] = registers[VIRT_HEIGHT] = HEIGHT;
    registers[BPP] = 32;
    registers[X_OFFSET] = registers[Y_OFFSET] = 0;
    registers[ENABLE] = 0x41;
    /* Attribute controller, 0x3c0: out of the blank. */
    window[0x400] = 0x20;
    closedir(bus);
    return map(folder, "resource0", WIDTH * HEIGHT * 4);
  }
  die("fatal there is no display");
  return NULL;
}

static int open_inputs(struct pollfd *fds) {
  int n = 0;
  for (int i = 0; i < MAX_INPUTS; i++) {
    char path[32];
    snprintf(path, sizeof path, "/dev/input/event%d", i);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) continue;
    ioctl(fd, EVIOCGRAB, 1);
    fds[n].fd = fd;
    fds[n++].events = POLLIN;
  }
  return n;
}

/* Touch: where the finger is, and where and whether it went down. */
static int x, y, down_x, down_y, down, shift, control;
#define RANGE 32768

static void key(int code) {
  static const char *const PLAIN = "\0\0331234567890-=\b\tqwertyuiop[]\n\0asdfghjkl;'`\0\\zxcvbnm,./";
  static const char *const SHIFTED = "\0\033!@#$%^&*()_+\b\tQWERTYUIOP{}\n\0ASDFGHJKL:\"~\0|ZXCVBNM<>?";
  if (code == KEY_HOME) return key_home();
  if (code == KEY_SPACE) return key_char(' ');
  if (code <= 0 || code > KEY_SLASH) return;
  char c = (shift ? SHIFTED : PLAIN)[code];
  if (control) {
    if (c == 'a' || c == 'A') select_all();
  } else if (c == '\b') key_backspace();
  else if (c == '\n') key_enter();
  else if (c >= ' ') key_char(c);
}

static void touch(int pressed) {
  if (pressed && !down) down_x = x, down_y = y;
  if (!pressed && down) {
    int dx = x - down_x, dy = y - down_y;
    if (abs(dy) > 40 && abs(dy) > abs(dx)) swipe(dy);
    else if (abs(dx) <= 24 && abs(dy) <= 24) tap(down_x, down_y);
  }
  down = pressed;
}

static void take(const struct input_event *event) {
  static int pressed = -1;
  if (event->type != EV_SYN) events++;
  if (event->type == EV_ABS && event->code == ABS_X) x = (int)((long)event->value * WIDTH / RANGE);
  if (event->type == EV_ABS && event->code == ABS_Y) y = (int)((long)event->value * HEIGHT / RANGE);
  /* A button may come before the place it was pressed at: the two belong together up to the next SYN. */
  if (event->type == EV_KEY && (event->code == BTN_LEFT || event->code == BTN_TOUCH)) pressed = event->value != 0;
  else if (event->type == EV_KEY && (event->code == KEY_LEFTSHIFT || event->code == KEY_RIGHTSHIFT)) shift = event->value != 0;
  else if (event->type == EV_KEY && (event->code == KEY_LEFTCTRL || event->code == KEY_RIGHTCTRL)) control = event->value != 0;
  else if (event->type == EV_KEY && event->value == 1) key(event->code);
  if (event->type == EV_SYN && pressed >= 0) {
    touch(pressed);
    pressed = -1;
  }
}

int main(void) {
  mount("none", "/dev", "devtmpfs", 0, NULL);
  mount("none", "/sys", "sysfs", 0, NULL);
  open_serial();
  display = open_display();
  reset_phone(0);
  show();
  load_modules();
  struct pollfd fds[MAX_INPUTS + 1];
  fds[0].fd = serial;
  fds[0].events = POLLIN;
  int n = 1 + open_inputs(&fds[1]);
  if (n < 3) die("fatal touch or keys are missing");
  answer("0 {\"ready\":true}");

  char line[256];
  size_t filled = 0;
  for (;;) {
    poll(fds, (nfds_t)n, -1);
    for (int i = 1; i < n; i++) {
      struct input_event event;
      while (read(fds[i].fd, &event, sizeof event) == sizeof event) take(&event);
    }
    show();
    if (!(fds[0].revents & POLLIN)) continue;
    char bytes[256];
    ssize_t got = read(serial, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; i++) {
      if (bytes[i] != '\n') {
        if (filled + 1 < sizeof line) line[filled++] = bytes[i];
        continue;
      }
      line[filled] = 0;
      filled = 0;
      serve(line, answer);
    }
  }
}
