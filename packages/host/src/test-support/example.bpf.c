// What the tests of the room bpf load: a hook of connect, a tc program, and a map of each kind that is used.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// Addresses and ports are in network order everywhere.
struct target {
  __u32 address;
  __u16 port;
  __u16 flags;
};
#define REFUSED 1

struct prefix {
  __u32 length;
  __u32 address;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16);
  __type(key, struct target); // with flags 0
  __type(value, struct target);
} services SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16);
  __type(key, __u64); // a socket's cookie
  __type(value, struct target);
} origins SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(max_entries, 16);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct prefix);
  __type(value, __u32); // the mark
} sources SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
} settings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, __u64);
} hits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 16);
  __type(key, __u32);
  __type(value, __u32); // shorter than the 8 bytes that each CPU's value takes
} bytes_of SEC(".maps");

static __always_inline void count(__u32 at) {
  __u64 *hit = bpf_map_lookup_elem(&hits, &at);
  if (hit)
    *hit += 1;
}

static __always_inline int connect_to(struct bpf_sock_addr *ctx) {
  struct target key = {.address = ctx->user_ip4, .port = ctx->user_port};
  struct target *to = bpf_map_lookup_elem(&services, &key);
  if (!to)
    return 1;
  if (to->flags & REFUSED)
    return 0;
  __u64 cookie = bpf_get_socket_cookie(ctx);
  bpf_map_update_elem(&origins, &cookie, &key, BPF_ANY);
  ctx->user_ip4 = to->address;
  ctx->user_port = to->port;
  return 1;
}

SEC("cgroup/connect4")
int on_connect4(struct bpf_sock_addr *ctx) {
  count(0);
  return connect_to(ctx);
}

// The program that takes the place of on_connect4 in the test of a link's update.
SEC("cgroup/connect4")
int next_connect4(struct bpf_sock_addr *ctx) {
  count(1);
  return connect_to(ctx);
}

SEC("cgroup/getpeername4")
int on_getpeername4(struct bpf_sock_addr *ctx) {
  __u64 cookie = bpf_get_socket_cookie(ctx);
  struct target *origin = bpf_map_lookup_elem(&origins, &cookie);
  if (origin) {
    ctx->user_ip4 = origin->address;
    ctx->user_port = origin->port;
  }
  return 1;
}

// UDP over IPv4 without options: drop what no prefix covers, mark the rest and send it to port 4242.
SEC("tc")
int on_ingress(struct __sk_buff *skb) {
  void *end = (void *)(long)skb->data_end;
  struct ethhdr *eth = (void *)(long)skb->data;
  struct iphdr *ip = (void *)(eth + 1);
  struct udphdr *udp = (void *)(ip + 1);
  if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_UDP)
    return TC_ACT_UNSPEC;
  struct prefix key = {.length = 32, .address = ip->saddr};
  __u32 *mark = bpf_map_lookup_elem(&sources, &key);
  count(mark ? 2 : 3);
  if (!mark)
    return TC_ACT_SHOT;
  skb->mark = *mark;
  udp->dest = bpf_htons(4242);
  return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
