/* What tells a process which host it is on, where no namespace does: preloaded into every process of a stand-in
 * (standin.py). It answers for the host's name, its names of others and its one network card, and lets a connection
 * through only where the run's network policies do.
 *
 * Who is on which host is kept in the soft limit of POSIX message queues, which children inherit, which nobody uses
 * and which, unlike the environment, no MPI hands on to other hosts.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#define BASE 700000 /* the limit of host 0; standin.py has the same */
#define HOSTS 64
#define NAMES 512
#define RULES 4096

static struct { char name[256]; in_addr_t address; } hosts[HOSTS];
static struct { char name[256]; int host; } names[NAMES];
static struct { int from, to, low, high; } rules[RULES];
static int host_count, name_count, rule_count, filtered, loaded;

#define REAL(f) ((__typeof__(&f))dlsym(RTLD_NEXT, #f))

/* The host of this process; -1 outside of all. */
static int own(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_MSGQUEUE, &limit) || limit.rlim_cur < BASE || limit.rlim_cur >= BASE + HOSTS) return -1;
  return (int)(limit.rlim_cur - BASE);
}

/* `host NAME ADDRESS`, `name NAME HOST`, `filtered`, `allow FROM TO LOW HIGH`. */
static void load(void) {
  if (loaded) return;
  loaded = 1;
  const char *path = getenv("GANGPLAN_STANDIN");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[512], text[256], address[64];
  int one, two, low, high;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "host %127s %63s", text, address) == 2 && host_count < HOSTS) {
      snprintf(hosts[host_count].name, sizeof hosts[0].name, "%s", text);
      hosts[host_count++].address = inet_addr(address);
    } else if (sscanf(line, "name %255s %d", text, &one) == 2 && name_count < NAMES) {
      snprintf(names[name_count].name, sizeof names[0].name, "%s", text);
      names[name_count++].host = one;
    } else if (sscanf(line, "allow %d %d %d %d", &one, &two, &low, &high) == 4 && rule_count < RULES) {
      rules[rule_count].from = one, rules[rule_count].to = two;
      rules[rule_count].low = low, rules[rule_count++].high = high;
    } else if (!strncmp(line, "filtered", 8)) {
      filtered = 1;
    }
  }
  if (file) fclose(file);
}

static int valid(void) {
  load();
  int host = own();
  return host < host_count ? host : -1;
}

/* The host behind a name: what DNS says, and one's own short name, which the kubelet writes. */
static int named(const char *name) {
  int self = valid();
  if (self < 0 || !name) return -1;
  if (!strcasecmp(name, hosts[self].name)) return self;
  for (int at = 0; at < name_count; at++)
    if (!strcasecmp(names[at].name, name)) return names[at].host;
  return -1;
}

/* A pod's 10.77.a.b is 127.77.a.b of the machine's loopback, where whoever is no root may listen too. */
static in_addr_t behind(in_addr_t address) { return htonl((ntohl(address) & 0x00ffffff) | 0x7f000000); }

static void shown(struct sockaddr *found) {
  struct sockaddr_in *it = (struct sockaddr_in *)found;
  if (found && found->sa_family == AF_INET && (ntohl(it->sin_addr.s_addr) >> 16) == 0x7f4d)
    it->sin_addr.s_addr = htonl((ntohl(it->sin_addr.s_addr) & 0x00ffffff) | 0x0a000000);
}

static int addressed(in_addr_t address) {
  for (int at = 0; at < host_count; at++)
    if (hosts[at].address == address) return at;
  return -1;
}

int gethostname(char *name, size_t size) {
  int host = valid();
  if (host < 0) return REAL(gethostname)(name, size);
  if (strlen(hosts[host].name) >= size) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(name, hosts[host].name);
  return 0;
}

int uname(struct utsname *found) {
  int code = REAL(uname)(found), host = valid();
  if (!code && host >= 0) snprintf(found->nodename, sizeof found->nodename, "%.64s", hosts[host].name);
  return code;
}

static const char *numeric(const char *name, char *room) {
  int host = named(name);
  if (host < 0) return name;
  struct in_addr address = {hosts[host].address};
  return inet_ntop(AF_INET, &address, room, INET_ADDRSTRLEN);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  char room[INET_ADDRSTRLEN];
  int asks = hints && hints->ai_flags & AI_NUMERICHOST; /* whether it is an address, which a name is not */
  return REAL(getaddrinfo)(asks ? node : numeric(node, room), service, hints, found);
}

struct hostent *gethostbyname(const char *name) {
  char room[INET_ADDRSTRLEN];
  return REAL(gethostbyname)(numeric(name, room));
}

struct hostent *gethostbyname2(const char *name, int family) {
  char room[INET_ADDRSTRLEN];
  const char *known = numeric(name, room);
  if (known != name && family != AF_INET) {
    h_errno = NO_DATA;
    return NULL;
  }
  return REAL(gethostbyname2)(known, family);
}

/* Two cards: the loopback and eth0 with the pod's address. */
static void fill(struct sockaddr *to, in_addr_t address) {
  struct sockaddr_in it = {.sin_family = AF_INET, .sin_addr = {address}};
  memcpy(to, &it, sizeof it);
}

int getifaddrs(struct ifaddrs **found) {
  static char lo[] = "lo", eth0[] = "eth0";
  int host = valid();
  if (host < 0) return REAL(getifaddrs)(found);
  struct all { struct ifaddrs item[2]; struct sockaddr_in address[2], mask[2]; } *all = calloc(1, sizeof *all);
  if (!all) return -1;
  in_addr_t addresses[2] = {htonl(INADDR_LOOPBACK), hosts[host].address};
  for (int at = 0; at < 2; at++) {
    fill((struct sockaddr *)&all->address[at], addresses[at]);
    fill((struct sockaddr *)&all->mask[at], htonl(at ? 0xffff0000 : 0xff000000));
    all->item[at].ifa_name = at ? eth0 : lo;
    all->item[at].ifa_flags = IFF_UP | IFF_RUNNING | (at ? IFF_BROADCAST | IFF_MULTICAST : IFF_LOOPBACK);
    all->item[at].ifa_addr = (struct sockaddr *)&all->address[at];
    all->item[at].ifa_netmask = (struct sockaddr *)&all->mask[at];
    all->item[at].ifa_next = at ? NULL : &all->item[1];
  }
  *found = all->item;
  return 0;
}

void freeifaddrs(struct ifaddrs *list) {
  if (valid() < 0) REAL(freeifaddrs)(list);
  else free(list);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void *what = va_arg(rest, void *);
  va_end(rest);
  int host = valid();
  struct ifreq *card = what;
  struct ifconf *cards = what;
  if (host < 0) return REAL(ioctl)(fd, request, what);
  if (request == SIOCGIFCONF) {
    int room = cards->ifc_len / (int)sizeof(struct ifreq), count = room < 2 ? room : 2;
    if (!cards->ifc_req) count = 2;
    for (int at = 0; cards->ifc_req && at < count; at++) {
      memset(&cards->ifc_req[at], 0, sizeof(struct ifreq));
      strcpy(cards->ifc_req[at].ifr_name, at ? "eth0" : "lo");
      fill(&cards->ifc_req[at].ifr_addr, at ? hosts[host].address : htonl(INADDR_LOOPBACK));
    }
    cards->ifc_len = count * (int)sizeof(struct ifreq);
    return 0;
  }
  int is_eth = what && request >= SIOCGIFNAME && request <= SIOCGIFINDEX && !strcmp(card->ifr_name, "eth0");
  if (is_eth && request == SIOCGIFFLAGS) {
    card->ifr_flags = IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST;
    return 0;
  }
  if (is_eth && request == SIOCGIFADDR) return fill(&card->ifr_addr, hosts[host].address), 0;
  if (is_eth && request == SIOCGIFNETMASK) return fill(&card->ifr_netmask, htonl(0xffff0000)), 0;
  if (is_eth && request == SIOCGIFHWADDR) return memset(&card->ifr_hwaddr, 0, sizeof card->ifr_hwaddr), 0;
  if (is_eth && request == SIOCGIFMTU) return card->ifr_mtu = 1500, 0;
  if (is_eth && request == SIOCGIFINDEX) return card->ifr_ifindex = 2, 0;
  return REAL(ioctl)(fd, request, what);
}

/* A listener on any address is one on the pod's own, so that two hosts may have the same port. */
int bind(int fd, const struct sockaddr *to, socklen_t size) {
  int host = valid();
  if (host < 0 || !to || to->sa_family != AF_INET) return REAL(bind)(fd, to, size);
  struct sockaddr_in it = *(const struct sockaddr_in *)to;
  if (it.sin_addr.s_addr == htonl(INADDR_ANY) || it.sin_addr.s_addr == hosts[host].address)
    it.sin_addr.s_addr = behind(hosts[host].address);
  return REAL(bind)(fd, (struct sockaddr *)&it, sizeof it);
}

static int may(int from, int to, int port) {
  if (!filtered || from == to) return 1;
  for (int at = 0; at < rule_count; at++)
    if (rules[at].from == from && rules[at].to == to && rules[at].low <= port && port <= rules[at].high) return 1;
  return 0;
}

int connect(int fd, const struct sockaddr *to, socklen_t size) {
  int host = valid();
  if (host >= 0 && to && to->sa_family == AF_INET6 &&
      !IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)to)->sin6_addr)) {
    errno = ECONNREFUSED; /* pods have addresses of IPv4 */
    return -1;
  }
  if (host < 0 || !to || to->sa_family != AF_INET) return REAL(connect)(fd, to, size);
  struct sockaddr_in it = *(const struct sockaddr_in *)to, mine;
  socklen_t room = sizeof mine;
  int is_loop = it.sin_addr.s_addr == htonl(INADDR_LOOPBACK), target = addressed(it.sin_addr.s_addr);
  if (!is_loop && (target < 0 || !may(host, target, ntohs(it.sin_port)))) {
    errno = ECONNREFUSED;
    return -1;
  }
  if (is_loop) {
    int code = REAL(connect)(fd, to, size);
    if (!code || errno != ECONNREFUSED) return code;
    it.sin_addr.s_addr = behind(hosts[host].address); /* what listens on any address */
    return REAL(connect)(fd, (struct sockaddr *)&it, sizeof it);
  }
  if (!REAL(getsockname)(fd, (struct sockaddr *)&mine, &room) && mine.sin_addr.s_addr == htonl(INADDR_ANY)) {
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr = {behind(hosts[host].address)}};
    REAL(bind)(fd, (struct sockaddr *)&source, sizeof source);
  }
  it.sin_addr.s_addr = behind(it.sin_addr.s_addr);
  return REAL(connect)(fd, (struct sockaddr *)&it, sizeof it);
}

/* Addresses of sockets as pods know them. */
int getsockname(int fd, struct sockaddr *found, socklen_t *size) {
  int code = REAL(getsockname)(fd, found, size);
  if (!code && valid() >= 0) shown(found);
  return code;
}

int getpeername(int fd, struct sockaddr *found, socklen_t *size) {
  int code = REAL(getpeername)(fd, found, size);
  if (!code && valid() >= 0) shown(found);
  return code;
}

int accept(int fd, struct sockaddr *found, socklen_t *size) {
  int code = REAL(accept)(fd, found, size);
  if (code >= 0 && found && valid() >= 0) shown(found);
  return code;
}

int accept4(int fd, struct sockaddr *found, socklen_t *size, int flags) {
  int code = REAL(accept4)(fd, found, size, flags);
  if (code >= 0 && found && valid() >= 0) shown(found);
  return code;
}
