// Socket load balancing: whoever connects or sends to a service's address gets to one of its endpoints, before there is any packet.
// Hooks of a cgroup: they see its processes, in whichever network namespace.
#include <linux/errno.h>
#include <linux/in.h>
#include "choose.h"

#define ALLOW 1

struct question {
  struct destination to;
  bool is_connecting; // else each datagram asks
};

static __always_inline __u32 mixed(__u64 value) {
  value *= 0x9e3779b97f4a7c15ULL;
  return value >> 32;
}

// Find out what becomes of a question; with SERVE the endpoint is in `chosen`.
static __always_inline enum verdict answer(struct bpf_sock_addr *ctx, const struct question *question, struct endpoint *chosen) {
  __u64 namespace = bpf_get_netns_cookie(ctx);
  if (bpf_map_lookup_elem(&opted_out, &namespace))
    return PASS;
  __u32 first = 0;
  struct settings *node = bpf_map_lookup_elem(&settings, &first);
  bool is_host = node && node->host_namespace == namespace;
  struct address from = {.words = {0, 0, (__u32)(namespace >> 32), (__u32)namespace}};
  // A socket that isn't connected keeps to its endpoint, as a flow in conntrack would.
  __u32 number = question->is_connecting ? bpf_get_prandom_u32() : mixed(bpf_get_socket_cookie(ctx));
  for (int attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    struct service *service = find_service(&question->to);
    if (!service || service->flags & (is_host ? HOST_PASS : PODS_PASS))
      return PASS;
    struct choice *choice = is_host ? &service->host : &service->pod;
    enum verdict verdict = choice->verdict;
    if (verdict == SERVE && !choose(service, choice, &from, number, chosen))
      continue;
    __u64 row = service->row;
    // Its memory may have become another element's meanwhile.
    if (find_service(&question->to) != service)
      continue;
    if (verdict != PASS)
      count(row, verdict, question->is_connecting);
    return verdict;
  }
  return REJECT;
}

// Remember what was asked for, so that the program at the socket sees that as its peer.
static __always_inline void remember(struct bpf_sock_addr *ctx, const struct question *question, const struct endpoint *chosen) {
  struct peer peer = {.socket = bpf_get_socket_cookie(ctx), .endpoint = *chosen};
  struct endpoint to = {.address = question->to.address, .port = question->to.port};
  struct endpoint *before = bpf_map_lookup_elem(&asked, &peer);
  // Nearly always so for the second datagram and all after it; a lookup keeps the entry young, too.
  if (before && before->port == to.port && is_same(&before->address, &to.address))
    return;
  bpf_map_update_elem(&asked, &peer, &to, BPF_ANY);
}

// A socket that asks an endpoint by its own address wants to see that. A connected socket of IPv6 whose peer is ::ffff:a.b.c.d says that address with each
// datagram, although its program does not, so it keeps what it asked for.
static __always_inline void forget(struct bpf_sock_addr *ctx, const struct question *question) {
  struct bpf_sock *sk = ctx->sk;
  if (!question->is_connecting && sk && sk->state == BPF_TCP_ESTABLISHED)
    return;
  struct peer peer = {.socket = bpf_get_socket_cookie(ctx), .endpoint = {.address = question->to.address, .port = question->to.port}};
  bpf_map_delete_elem(&asked, &peer);
}

// The service that a peer stands for, if it does for this socket.
static __always_inline struct endpoint *asked_for(struct bpf_sock_addr *ctx, struct address address) {
  struct peer peer = {.socket = bpf_get_socket_cookie(ctx), .endpoint = {.address = address, .port = ctx->user_port}};
  return bpf_map_lookup_elem(&asked, &peer);
}

static __always_inline struct address address6(struct bpf_sock_addr *ctx) {
  struct address address = {.words = {ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]}};
  return address;
}

static __always_inline void set_address6(struct bpf_sock_addr *ctx, const struct address *address) {
  ctx->user_ip6[0] = address->words[0];
  ctx->user_ip6[1] = address->words[1];
  ctx->user_ip6[2] = address->words[2];
  ctx->user_ip6[3] = address->words[3];
}

// Decide on a call of connect or sendmsg. True: the caller writes `chosen` where the kernel reads the address.
static __always_inline bool serves(struct bpf_sock_addr *ctx, struct question *question, struct endpoint *chosen, int *result) {
  *result = ALLOW;
  question->to.port = ctx->user_port;
  question->to.protocol = ctx->protocol;
  if (question->to.protocol != IPPROTO_TCP && question->to.protocol != IPPROTO_UDP)
    return false;
  switch (answer(ctx, question, chosen)) {
  case SERVE:
    remember(ctx, question, chosen);
    return true;
  case REJECT:
    // What an ICMP port unreachable comes to; with 0 alone the caller gets EPERM.
    bpf_set_retval(-ECONNREFUSED);
    *result = 0;
    return false;
  default:
    // What is dropped goes on to the service's address: only a packet can be dropped in silence.
    if (question->to.protocol == IPPROTO_UDP)
      forget(ctx, question);
    return false;
  }
}

static __always_inline int redirect4(struct bpf_sock_addr *ctx, bool is_connecting) {
  struct question question = {.to = {.address = mapped(ctx->user_ip4)}, .is_connecting = is_connecting};
  struct endpoint chosen = {};
  int result;
  if (serves(ctx, &question, &chosen, &result)) {
    ctx->user_ip4 = chosen.address.words[3];
    ctx->user_port = chosen.port;
  }
  return result;
}

static __always_inline int redirect6(struct bpf_sock_addr *ctx, bool is_connecting) {
  struct question question = {.to = {.address = address6(ctx)}, .is_connecting = is_connecting};
  struct endpoint chosen = {};
  int result;
  if (serves(ctx, &question, &chosen, &result)) {
    set_address6(ctx, &chosen.address);
    ctx->user_port = chosen.port;
  }
  return result;
}

static __always_inline int show4(struct bpf_sock_addr *ctx) {
  struct endpoint *to = asked_for(ctx, mapped(ctx->user_ip4));
  if (to) {
    ctx->user_ip4 = to->address.words[3];
    ctx->user_port = to->port;
  }
  return ALLOW;
}

static __always_inline int show6(struct bpf_sock_addr *ctx) {
  struct endpoint *to = asked_for(ctx, address6(ctx));
  if (to) {
    set_address6(ctx, &to->address);
    ctx->user_port = to->port;
  }
  return ALLOW;
}

// The kernel keeps 15 characters of a name.
SEC("cgroup/connect4")
int turnout_conn4(struct bpf_sock_addr *ctx) {
  return redirect4(ctx, true);
}

// Also for IPv4 by ::ffff:a.b.c.d.
SEC("cgroup/connect6")
int turnout_conn6(struct bpf_sock_addr *ctx) {
  return redirect6(ctx, true);
}

SEC("cgroup/sendmsg4")
int turnout_send4(struct bpf_sock_addr *ctx) {
  return redirect4(ctx, false);
}

SEC("cgroup/sendmsg6")
int turnout_send6(struct bpf_sock_addr *ctx) {
  return redirect6(ctx, false);
}

SEC("cgroup/recvmsg4")
int turnout_recv4(struct bpf_sock_addr *ctx) {
  return show4(ctx);
}

SEC("cgroup/recvmsg6")
int turnout_recv6(struct bpf_sock_addr *ctx) {
  return show6(ctx);
}

SEC("cgroup/getpeername4")
int turnout_peer4(struct bpf_sock_addr *ctx) {
  return show4(ctx);
}

SEC("cgroup/getpeername6")
int turnout_peer6(struct bpf_sock_addr *ctx) {
  return show6(ctx);
}

char _license[] SEC("license") = "GPL";
