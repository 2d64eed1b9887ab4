// How a client gets to an endpoint, for both halves: find the service, choose from its list, keep to the choice.
#pragma once
#include <linux/in.h>
#include <stdbool.h>
#include "layout.h"

// How often a list may be replaced while one client chooses.
#define ATTEMPTS 3
#define MAPPED bpf_htonl(0xffff)
// A list has fewer endpoints than 2 to the power of this.
#define HALVINGS 20

static __always_inline struct address mapped(__be32 ipv4) {
  struct address address = {.words = {0, 0, MAPPED, ipv4}};
  return address;
}

static __always_inline bool is_mapped(const struct address *address) {
  return address->words[0] == 0 && address->words[1] == 0 && address->words[2] == MAPPED;
}

// The family's 0.0.0.0 or ::.
static __always_inline struct address unspecified(const struct address *of) {
  struct address address = {.words = {0, 0, is_mapped(of) ? MAPPED : 0, 0}};
  return address;
}

static __always_inline bool is_same(const struct address *a, const struct address *b) {
  return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2] && a->words[3] == b->words[3];
}

// The node has this address, and it is of this kind.
static __always_inline bool has_address(const struct address *address, __u32 flag) {
  __u32 *flags = bpf_map_lookup_elem(&node_addresses, address);
  return flags && *flags & flag;
}

// An address goes before a node port.
static __always_inline struct service *find_service(const struct destination *to) {
  struct destination port = *to;
  port.address = unspecified(&to->address);
  // Who connects to 0.0.0.0 means itself, and not a node port.
  if (is_same(&port.address, &to->address))
    return NULL;
  struct service *service = bpf_map_lookup_elem(&services, to);
  if (service || !has_address(&to->address, NODE_PORTS))
    return service;
  return bpf_map_lookup_elem(&services, &port);
}

// The host has the cluster IP that is asked for by itself. Which of its ports it serves, its listeners say.
static __always_inline bool is_on_host(const struct service *service, const struct destination *to) {
  return service->flags & CLUSTER_IP && has_address(&to->address, LISTENERS);
}

// Ports and addresses as the kernel's functions want them; gives the length, which says the family.
static __always_inline __u32 tuple_of(const struct destination *to, const struct address *from, __be16 source_port, struct bpf_sock_tuple *tuple) {
  if (is_mapped(&to->address)) {
    tuple->ipv4.saddr = from->words[3];
    tuple->ipv4.daddr = to->address.words[3];
    tuple->ipv4.sport = source_port;
    tuple->ipv4.dport = to->port;
    return sizeof(tuple->ipv4);
  }
  __builtin_memcpy(tuple->ipv6.saddr, from, sizeof(*from));
  __builtin_memcpy(tuple->ipv6.daddr, &to->address, sizeof(to->address));
  tuple->ipv6.sport = source_port;
  tuple->ipv6.dport = to->port;
  return sizeof(tuple->ipv6);
}

// A socket of this network namespace takes what `from` sends. Of TCP also one that is about to end counts: its listener gets what comes next.
static __always_inline bool has_listener(void *ctx, const struct destination *to, const struct address *from, __be16 source_port) {
  struct bpf_sock_tuple tuple = {};
  __u32 length = tuple_of(to, from, source_port, &tuple);
  struct bpf_sock *sk = to->protocol == IPPROTO_TCP ? bpf_skc_lookup_tcp(ctx, &tuple, length, BPF_F_CURRENT_NETNS, 0)
                                                    : bpf_sk_lookup_udp(ctx, &tuple, length, BPF_F_CURRENT_NETNS, 0);
  if (!sk)
    return false;
  bpf_sk_release(sk);
  return true;
}

static __always_inline struct endpoint *endpoint_at(__u64 list, __u32 index) {
  struct place place = {.list = list, .index = index};
  return bpf_map_lookup_elem(&endpoints, &place);
}

// Below 0, 0 or above, as memcmp.
static __always_inline int compare(const struct endpoint *a, const struct endpoint *b) {
  for (int at = 0; at < 4; at += 1) {
    __u32 left = bpf_ntohl(a->address.words[at]);
    __u32 right = bpf_ntohl(b->address.words[at]);
    if (left != right)
      return left < right ? -1 : 1;
  }
  return (int)bpf_ntohs(a->port) - (int)bpf_ntohs(b->port);
}

// The verifier looks at a global function by itself and once, and not again on each way that leads here.
__attribute__((noinline)) int is_in_list(const struct choice *choice, const struct endpoint *endpoint) {
  if (!choice || !endpoint)
    return false;
  __u32 low = 0;
  __u32 high = choice->count;
  for (int step = 0; step < HALVINGS && low < high; step += 1) {
    __u32 middle = low + (high - low) / 2;
    struct endpoint *other = endpoint_at(choice->list, middle);
    if (!other)
      return false;
    int order = compare(endpoint, other);
    if (order == 0)
      return true;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return false;
}

static __always_inline bool is_same_client(const struct client *a, const struct client *b) {
  return a->row == b->row && is_same(&a->address, &b->address);
}

// Words are in network order, so that the bits that differ are the upper ones.
static __always_inline __u32 hash_of(const struct client *client) {
  __u32 hash = client->row ^ client->row >> 32;
  for (int at = 0; at < 4; at += 1) {
    hash ^= client->address.words[at];
    hash = (hash ^ hash >> 16) * 0x85ebca6b;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    hash ^= hash >> 16;
  }
  return hash;
}

// The number of the place that has a client; if none has, of the one in its set that was unused for longest.
__attribute__((noinline)) int place_number(const struct client *client, __u64 tenant, __u32 sets) {
  if (!client || !sets)
    return 0;
  struct client_place place = {.tenant = tenant};
  __u32 first = hash_of(client) % sets * PLACES_OF_SET;
  __u32 oldest = 0;
  __u64 oldest_ns = -1;
  for (__u32 at = 0; at < PLACES_OF_SET; at += 1) {
    place.number = first + at;
    struct kept *kept = bpf_map_lookup_elem(&affinity, &place);
    if (kept && is_same_client(&kept->client, client))
      return place.number;
    __u64 last_ns = kept ? kept->last_ns : 0;
    if (last_ns < oldest_ns) {
      oldest = at;
      oldest_ns = last_ns;
    }
  }
  return first + oldest;
}

static __always_inline bool is_recent(const struct kept *kept, const struct service *service, __u64 now_ns) {
  return now_ns - kept->last_ns < service->affinity_seconds * 1000000000ULL;
}

// Choose one of the list by `number`, or the one that the client had before. False: the list has just been replaced.
static __always_inline bool choose(const struct service *service, const struct choice *choice, const struct address *from, __u32 number,
                                   struct endpoint *chosen) {
  struct kept keep = {.client = {.row = service->row, .address = *from}};
  struct client_place place = {.tenant = service->tenant};
  if (service->affinity_seconds) {
    keep.last_ns = bpf_ktime_get_ns();
    place.number = place_number(&keep.client, service->tenant, service->affinity_sets);
    struct kept *before = bpf_map_lookup_elem(&affinity, &place);
    if (before && is_same_client(&before->client, &keep.client) && is_recent(before, service, keep.last_ns)) {
      *chosen = before->endpoint;
      if (is_in_list(choice, chosen)) {
        // Each new connection begins its time anew.
        keep.endpoint = *chosen;
        bpf_map_update_elem(&affinity, &place, &keep, BPF_ANY);
        return true;
      }
    }
  }
  struct endpoint *one = endpoint_at(choice->list, choice->count > 1 ? number % choice->count : 0);
  if (!one)
    return false;
  *chosen = *one;
  if (service->affinity_seconds) {
    keep.endpoint = *chosen;
    bpf_map_update_elem(&affinity, &place, &keep, BPF_ANY);
  }
  return true;
}

static __always_inline void count_outside(__u64 row) {
  struct counters *of = bpf_map_lookup_elem(&counters, &row);
  if (of)
    of->outside += 1;
}

static __always_inline void count(__u64 row, enum verdict verdict, bool is_connection) {
  struct counters *of = bpf_map_lookup_elem(&counters, &row);
  if (!of)
    return;
  if (verdict == REJECT)
    of->rejects += 1;
  else if (verdict == DROP)
    of->drops += 1;
  else if (is_connection)
    of->connections += 1;
  else
    of->datagrams += 1;
}
