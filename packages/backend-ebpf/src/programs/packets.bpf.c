// Services for packets: those from outside, and from clients whose sockets weren't balanced. Programs of tc.
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include "conntrack.h"

// Whatever is attached to the device behind it comes next.
#define NEXT TC_ACT_UNSPEC
#define AF_INET 2
#define AF_INET6 10
// Since Linux 6.7, and not in the headers of Debian 12.
#define FIB_LOOKUP_SKIP_NEIGH (1U << 2)
#define FIB_LOOKUP_SRC (1U << 4)

static __always_inline bool is_pod(const struct address *from) {
  struct pod_range range = {.bits = 128, .address = *from};
  return bpf_map_lookup_elem(&pod_ranges, &range);
}

// Its source ranges keep this client out.
static __always_inline bool is_blocked(const struct service *service, const struct address *from) {
  struct source_range range = {.bits = 64 + 128, .address = *from};
  __builtin_memcpy(range.ranges, &service->ranges, sizeof(range.ranges));
  return service->ranges && !bpf_map_lookup_elem(&source_ranges, &range);
}

// Whether it is a pod comes first.
static __always_inline struct choice *choice_for(struct service *service, const struct address *from, bool is_of_pods) {
  if (is_of_pods || is_pod(from))
    return &service->pod;
  return has_address(from, OWN) ? &service->host : &service->outside;
}

// The address of the device through which the endpoint is reached; the primary one where the route can't tell.
static __always_inline struct address address_towards(struct __sk_buff *skb, const struct packet *packet, const struct endpoint *chosen) {
  // No packet of 1 byte is too long for the way; 0 would mean this packet's own length.
  struct bpf_fib_lookup route = {.ifindex = skb->ingress_ifindex, .tot_len = 1};
  if (packet->is_ipv4) {
    route.family = AF_INET;
    route.ipv4_src = packet->from.words[3];
    route.ipv4_dst = chosen->address.words[3];
  } else {
    route.family = AF_INET6;
    __builtin_memcpy(route.ipv6_src, &packet->from, sizeof(route.ipv6_src));
    __builtin_memcpy(route.ipv6_dst, &chosen->address, sizeof(route.ipv6_dst));
  }
  struct address address = {};
  if (bpf_fib_lookup(skb, &route, sizeof(route), FIB_LOOKUP_SKIP_NEIGH | FIB_LOOKUP_SRC) == BPF_FIB_LKUP_RET_SUCCESS) {
    if (packet->is_ipv4)
      return mapped(route.ipv4_src);
    __builtin_memcpy(&address, route.ipv6_src, sizeof(address));
    return address;
  }
  struct address family = unspecified(&packet->from);
  struct address *primary = bpf_map_lookup_elem(&primaries, &family);
  return primary ? *primary : packet->from;
}

// An endpoint in the node's own network namespace gets no packet from the node itself, so there the client's address stays.
static __always_inline bool begin(struct __sk_buff *skb, const struct packet *packet, const struct endpoint *chosen, bool masquerade) {
  bool is_hairpin = is_same(&chosen->address, &packet->from);
  struct address source = packet->from;
  if ((masquerade || is_hairpin) && !has_address(&chosen->address, OWN))
    source = address_towards(skb, packet, chosen);
  return track(skb, packet, chosen, &source);
}

// Since Linux 6.2.
extern void *bpf_cast_to_kern_ctx(void *skb) __ksym __weak;

struct sk_buff {
  __u8 active_extensions;
} __attribute__((preserve_access_index));

// @source linux/skbuff.h; the first, in kernels that have it.
enum skb_ext_id { SKB_EXT_BRIDGE_NF };

// With net.bridge.bridge-nf-call-iptables conntrack has seen what a bridge takes in already, and doesn't look again: too early for a flow that begins here.
// A packet that comes in by the bridge once more has forgotten that, and nothing of it is decided before.
static __always_inline bool has_passed_bridge(struct __sk_buff *skb) {
  if (!bpf_cast_to_kern_ctx || !bpf_core_enum_value_exists(enum skb_ext_id, SKB_EXT_BRIDGE_NF))
    return false;
  struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);
  return packet->active_extensions & 1 << SKB_EXT_BRIDGE_NF;
}

static __always_inline enum taker taker_of(struct __sk_buff *skb, const struct service *service, const struct packet *packet) {
  if (!is_on_host(service, &packet->to))
    return AS_BEFORE;
  return has_listener(skb, &packet->to, &packet->from, packet->source_port) ? HOST : SERVICE;
}

// What a socket of this node asked a service for was decided on there: its packets go to the endpoint that it got, whoever else claims that.
// The kernel forgets a packet's socket later than here, also on its way out of a pod's network namespace.
static __always_inline bool is_of_served_socket(struct __sk_buff *skb, const struct packet *packet) {
  struct peer peer = {.socket = bpf_get_socket_cookie(skb), .endpoint = {.address = packet->to.address, .port = packet->to.port}};
  if (!peer.socket)
    return false;
  if (packet->to.protocol == IPPROTO_TCP)
    return bpf_map_lookup_elem(&asked_tcp, &peer);
  if (bpf_map_lookup_elem(&asked_udp, &peer))
    return true;
  peer.is_sender = 1;
  return bpf_map_lookup_elem(&chosen_udp, &peer);
}

static __always_inline int enter(struct __sk_buff *skb, bool is_of_pods) {
  struct packet packet = {};
  if (skb->pkt_type != PACKET_HOST || !read_packet(skb, &packet))
    return NEXT;
  if (!find_service(&packet.to) || is_of_served_socket(skb, &packet))
    return NEXT;
  for (int attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    struct service *service = find_service(&packet.to);
    if (!service)
      return NEXT;
    enum taker taker = taker_of(skb, service, &packet);
    if (is_tracked(skb, &packet, taker) || taker == HOST)
      return NEXT;
    if (has_passed_bridge(skb))
      return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
    // Of a connection that conntrack has forgotten. It would take this for invalid, and nobody would rewrite it.
    if (packet.is_ending)
      return TC_ACT_SHOT;
    struct choice *choice = choice_for(service, &packet.from, is_of_pods);
    bool is_outside = is_blocked(service, &packet.from);
    enum verdict verdict = is_outside ? DROP : choice->verdict;
    struct endpoint chosen = {};
    if (verdict == SERVE && !choose(service, choice, &packet.from, bpf_get_prandom_u32(), &chosen))
      continue;
    __u64 row = service->row;
    bool masquerade = choice->masquerade;
    // Its memory may have become another element's meanwhile.
    if (find_service(&packet.to) != service)
      continue;
    if (verdict == SERVE && !begin(skb, &packet, &chosen, masquerade))
      continue;
    if (is_outside)
      count_outside(row);
    else
      count(row, verdict, true);
    if (verdict == REJECT)
      skb->mark = REFUSED_MARK;
    return verdict == DROP ? TC_ACT_SHOT : NEXT;
  }
  return TC_ACT_SHOT;
}

SEC("tc")
int turnout_in(struct __sk_buff *skb) {
  return enter(skb, false);
}

// Where detect-local tells pods by devices, on these.
SEC("tc")
int turnout_in_pods(struct __sk_buff *skb) {
  return enter(skb, true);
}

// What the host's own sockets let go out to a service's address. It is too late for NAT: conntrack has seen it.
SEC("tc")
int turnout_out(struct __sk_buff *skb) {
  struct packet packet = {};
  // What is forwarded was decided on where it came in.
  if (skb->ingress_ifindex || !read_packet(skb, &packet))
    return NEXT;
  struct service *service = find_service(&packet.to);
  if (!service || is_of_served_socket(skb, &packet))
    return NEXT;
  // Sockets have counted it.
  if (service->host.verdict != SERVE)
    return TC_ACT_SHOT;
  if (!is_blocked(service, &packet.from))
    return NEXT;
  count_outside(service->row);
  return TC_ACT_SHOT;
}

char _license[] SEC("license") = "GPL";
