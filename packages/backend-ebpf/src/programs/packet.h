// What the packet half reads of a packet: from whom to whom, and how conntrack knows it.
#pragma once
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include "choose.h"

// How many extension headers of IPv6 are passed over.
#define EXTENSIONS 6
#define FRAGMENT_OFFSET 0x1fff
#define FRAGMENT_OFFSET6 0xfff8
#define TCP_FLAGS 13
#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

struct packet {
  struct destination to;
  struct address from;
  __be16 source_port;
  bool is_ipv4;
  bool is_opening; // the first of a TCP connection
  bool is_ending;  // its end
};

// An extension header of IPv6. Of a fragment's, `length` is reserved.
struct extension {
  __u8 next;
  __u8 length; // in units of 8 bytes, without the first
  __be16 fragment_offset;
};

// Devices without Ethernet have no header before IP's, so all is read from there.
static __always_inline bool read_at(struct __sk_buff *skb, __u32 offset, void *to, __u32 length) {
  return bpf_skb_load_bytes_relative(skb, offset, to, length, BPF_HDR_START_NET) == 0;
}

// Read ports and flags, which lie at `offset`. Only protocols whose flows the kfuncs of conntrack can make: they refuse SCTP.
static __always_inline bool read_ports(struct __sk_buff *skb, __u32 offset, struct packet *packet) {
  if (packet->to.protocol != IPPROTO_TCP && packet->to.protocol != IPPROTO_UDP)
    return false;
  __be16 ports[2];
  if (!read_at(skb, offset, ports, sizeof(ports)))
    return false;
  packet->source_port = ports[0];
  packet->to.port = ports[1];
  __u8 flags = 0;
  if (packet->to.protocol == IPPROTO_TCP)
    read_at(skb, offset + TCP_FLAGS, &flags, sizeof(flags));
  packet->is_opening = (flags & (SYN | ACK)) == SYN;
  packet->is_ending = flags & (FIN | RST);
  return true;
}

static __always_inline bool read_packet4(struct __sk_buff *skb, struct packet *packet) {
  struct iphdr ip;
  // Only a packet's first fragment has ports. What it begins is there when the kernel has put the packet together, and so before conntrack sees it.
  if (!read_at(skb, 0, &ip, sizeof(ip)) || ip.frag_off & bpf_htons(FRAGMENT_OFFSET))
    return false;
  packet->is_ipv4 = true;
  packet->from = mapped(ip.saddr);
  packet->to.address = mapped(ip.daddr);
  packet->to.protocol = ip.protocol;
  return read_ports(skb, ip.ihl * 4, packet);
}

static __always_inline bool read_packet6(struct __sk_buff *skb, struct packet *packet) {
  struct ipv6hdr ip;
  if (!read_at(skb, 0, &ip, sizeof(ip)))
    return false;
  __builtin_memcpy(&packet->from, &ip.saddr, sizeof(packet->from));
  __builtin_memcpy(&packet->to.address, &ip.daddr, sizeof(packet->to.address));
  __u32 offset = sizeof(ip);
  __u8 next = ip.nexthdr;
  for (int passed = 0; passed < EXTENSIONS; passed += 1) {
    bool is_fragment = next == IPPROTO_FRAGMENT;
    if (!is_fragment && next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
      break;
    struct extension header;
    if (!read_at(skb, offset, &header, sizeof(header)))
      return false;
    if (is_fragment && header.fragment_offset & bpf_htons(FRAGMENT_OFFSET6))
      return false;
    next = header.next;
    offset += is_fragment ? 8 : (header.length + 1) * 8;
  }
  packet->to.protocol = next;
  return read_ports(skb, offset, packet);
}

// False: the packet can't be for a service. Not inline, so that the verifier looks at its many paths once.
__noinline bool read_packet(struct __sk_buff *skb, struct packet *packet) {
  if (!packet)
    return false;
  switch (skb->protocol) {
  case bpf_htons(ETH_P_IP):
    return read_packet4(skb, packet);
  case bpf_htons(ETH_P_IPV6):
    return read_packet6(skb, packet);
  default:
    return false;
  }
}
