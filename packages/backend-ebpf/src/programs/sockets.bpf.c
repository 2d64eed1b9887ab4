// Socket load balancing: whoever connects or sends to a service's address gets to one of its endpoints, before there is any packet.
// Hooks of a cgroup: they see its processes, in whichever network namespace.
#include <linux/errno.h>
#include <linux/in.h>
#include "choose.h"

#define ALLOW 1
#define AF_INET 2

struct question {
  struct destination to;
  bool is_connecting; // else each datagram asks
};

static __always_inline bool is_same_end(const struct endpoint *a, const struct endpoint *b) {
  return a->port == b->port && is_same(&a->address, &b->address);
}

static __always_inline struct peer peer_of(struct bpf_sock_addr *ctx, const struct endpoint *end) {
  struct peer peer = {.socket = bpf_get_socket_cookie(ctx), .endpoint = *end};
  return peer;
}

// What a socket that isn't connected hears from.
static __always_inline struct peer sender_of(struct bpf_sock_addr *ctx, const struct endpoint *end) {
  struct peer peer = peer_of(ctx, end);
  peer.is_sender = 1;
  return peer;
}

static __always_inline struct endpoint asked_end(const struct question *question) {
  struct endpoint end = {.address = question->to.address, .port = question->to.port};
  return end;
}

// Nearly always it is noted already; the lookup keeps it young, too.
static __always_inline void note(void *map, const struct peer *peer, const struct endpoint *end) {
  struct endpoint *before = bpf_map_lookup_elem(map, peer);
  if (!before || !is_same_end(before, end))
    bpf_map_update_elem(map, peer, end, BPF_ANY);
}

// A socket that isn't connected keeps to its endpoint while that serves, as a flow in conntrack would. Affinity has a time of its own and comes first.
static __always_inline bool is_kept(const struct service *service, const struct choice *choice, const struct endpoint *before, struct endpoint *chosen) {
  if (!before || service->affinity_seconds)
    return false;
  *chosen = *before;
  return is_in_list(choice, chosen);
}

// A process of the host may listen at this cluster IP. The host's listeners can't be looked up from a pod's socket, so packets of pods are looked at.
static __always_inline bool is_of_host(struct bpf_sock_addr *ctx, const struct service *service, const struct destination *to, bool is_host) {
  struct address unbound = {};
  return is_on_host(service, to) && (!is_host || has_listener(ctx, to, &unbound, 0));
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
  struct endpoint to = asked_end(question);
  struct peer peer = peer_of(ctx, &to);
  for (int attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    struct service *service = find_service(&question->to);
    if (!service || service->flags & (is_host ? HOST_PASS : PODS_PASS) || is_of_host(ctx, service, &question->to, is_host))
      return PASS;
    struct endpoint *before = question->is_connecting ? NULL : bpf_map_lookup_elem(&chosen_udp, &peer);
    if (before && !before->port)
      return PASS;
    struct choice *choice = is_host ? &service->host : &service->pod;
    enum verdict verdict = choice->verdict;
    if (verdict == SERVE && !is_kept(service, choice, before, chosen) && !choose(service, choice, &from, bpf_get_prandom_u32(), chosen))
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

// Remember what was asked for, so that the program at the socket sees that as its peer, and what it got.
static __always_inline void remember(struct bpf_sock_addr *ctx, const struct question *question, const struct endpoint *chosen) {
  struct endpoint to = asked_end(question);
  struct peer got = peer_of(ctx, chosen);
  if (question->to.protocol == IPPROTO_TCP)
    return note(&asked_tcp, &got, &to);
  if (question->is_connecting)
    return note(&asked_udp, &got, &to);
  struct peer asked = peer_of(ctx, &to);
  note(&chosen_udp, &asked, chosen);
  struct peer sender = sender_of(ctx, chosen);
  note(&chosen_udp, &sender, &to);
}

// A connected socket of IPv6 whose peer is ::ffff:a.b.c.d says that address with each datagram, although its program does not.
static __always_inline bool is_connected(struct bpf_sock_addr *ctx, const struct question *question) {
  struct bpf_sock *sk = ctx->sk;
  return !question->is_connecting && sk && sk->state == BPF_TCP_ESTABLISHED;
}

// What it says is the endpoint that it got when it was connected, and no question, whoever else claims that.
static __always_inline bool is_answered(struct bpf_sock_addr *ctx, const struct question *question) {
  struct endpoint to = asked_end(question);
  struct peer peer = peer_of(ctx, &to);
  return question->to.protocol == IPPROTO_UDP && is_connected(ctx, question) && bpf_map_lookup_elem(&asked_udp, &peer);
}

// A socket that asks an endpoint by its own address wants to see that; a connected one keeps what it asked for.
static __always_inline void forget(struct bpf_sock_addr *ctx, const struct question *question) {
  if (is_connected(ctx, question))
    return;
  struct endpoint to = asked_end(question);
  struct peer peer = peer_of(ctx, &to);
  struct peer sender = sender_of(ctx, &to);
  bpf_map_delete_elem(&asked_udp, &peer);
  bpf_map_delete_elem(&chosen_udp, &sender);
}

// The service that a peer stands for, if it does for this socket.
static __always_inline struct endpoint *asked_for(struct bpf_sock_addr *ctx, const struct endpoint *end) {
  struct peer peer = peer_of(ctx, end);
  if (ctx->protocol == IPPROTO_TCP)
    return bpf_map_lookup_elem(&asked_tcp, &peer);
  struct endpoint *asked = bpf_map_lookup_elem(&asked_udp, &peer);
  if (asked)
    return asked;
  struct peer sender = sender_of(ctx, end);
  return bpf_map_lookup_elem(&chosen_udp, &sender);
}

// Somebody sends from an address of the node, and from a port that is a node port's, too. What this socket sends there is an answer, and not for the service.
static __always_inline void hear(struct bpf_sock_addr *ctx, const struct endpoint *from) {
  struct destination destination = {.address = from->address, .port = from->port, .protocol = IPPROTO_UDP};
  if (!has_address(&from->address, OWN) || !find_service(&destination))
    return;
  struct peer peer = peer_of(ctx, from);
  struct endpoint nobody = {};
  // If it asked the service there before, it goes on to.
  if (!bpf_map_lookup_elem(&chosen_udp, &peer))
    bpf_map_update_elem(&chosen_udp, &peer, &nobody, BPF_ANY);
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
  if ((question->to.protocol != IPPROTO_TCP && question->to.protocol != IPPROTO_UDP) || is_answered(ctx, question))
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

static __always_inline struct endpoint end4(struct bpf_sock_addr *ctx) {
  struct endpoint end = {.address = mapped(ctx->user_ip4), .port = ctx->user_port};
  return end;
}

static __always_inline struct endpoint end6(struct bpf_sock_addr *ctx) {
  struct endpoint end = {.address = address6(ctx), .port = ctx->user_port};
  return end;
}

// False: the socket asked no service for this.
static __always_inline bool show4(struct bpf_sock_addr *ctx, const struct endpoint *end) {
  struct endpoint *to = asked_for(ctx, end);
  if (!to)
    return false;
  ctx->user_ip4 = to->address.words[3];
  ctx->user_port = to->port;
  return true;
}

static __always_inline bool show6(struct bpf_sock_addr *ctx, const struct endpoint *end) {
  struct endpoint *to = asked_for(ctx, end);
  if (!to)
    return false;
  set_address6(ctx, &to->address);
  ctx->user_port = to->port;
  return true;
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
  struct endpoint from = end4(ctx);
  if (!show4(ctx, &from))
    hear(ctx, &from);
  return ALLOW;
}

SEC("cgroup/recvmsg6")
int turnout_recv6(struct bpf_sock_addr *ctx) {
  struct endpoint from = end6(ctx);
  if (!show6(ctx, &from))
    hear(ctx, &from);
  return ALLOW;
}

SEC("cgroup/getpeername4")
int turnout_peer4(struct bpf_sock_addr *ctx) {
  struct endpoint peer = end4(ctx);
  show4(ctx, &peer);
  return ALLOW;
}

SEC("cgroup/getpeername6")
int turnout_peer6(struct bpf_sock_addr *ctx) {
  struct endpoint peer = end6(ctx);
  show6(ctx, &peer);
  return ALLOW;
}

// All who had the socket have closed it. What it asked for goes with it, so that nobody looks through what ended long ago.
SEC("cgroup/sock_release")
int turnout_close(struct bpf_sock *sk) {
  struct peer peer = {.endpoint = {.port = sk->dst_port}};
  // Of one that isn't connected the map forgets what was not used for long.
  if (!peer.endpoint.port)
    return ALLOW;
  peer.socket = bpf_get_socket_cookie(sk);
  // The verifier takes no pointer into the context, which a compiler makes of two loads in two branches: so both are loaded.
  __be32 ipv4 = sk->dst_ip4;
  __be32 words[4] = {sk->dst_ip6[0], sk->dst_ip6[1], sk->dst_ip6[2], sk->dst_ip6[3]};
  barrier_var(ipv4);
  barrier_var(words[3]);
  struct address ipv6 = {.words = {words[0], words[1], words[2], words[3]}};
  peer.endpoint.address = sk->family == AF_INET ? mapped(ipv4) : ipv6;
  if (sk->protocol == IPPROTO_TCP)
    bpf_map_delete_elem(&asked_tcp, &peer);
  else
    bpf_map_delete_elem(&asked_udp, &peer);
  return ALLOW;
}

char _license[] SEC("license") = "GPL";
