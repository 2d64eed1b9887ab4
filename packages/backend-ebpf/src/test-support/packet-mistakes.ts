// Deliberate mistakes in the C of the packet half, each with the scenario that catches it.
import { OF_KIT } from "./mistakes.ts";
import type { Mistake } from "./mistakes.ts";

type Line = readonly [what: string, scenario: string, right: string, wrong: string];

const inFile = (file: Mistake["file"], lines: readonly Line[]): readonly Mistake[] =>
  lines.map(([what, scenario, right, wrong]) => ({ what, file, right, wrong, scenario }));

/** No mistake: a kernel that refuses a flag which came with Linux 6.7. */
export const BEFORE_LINUX_6_7: Mistake = {
  what: "the kernel can't tell a route's source address",
  file: "packets.bpf.c",
  right: "#define FIB_LOOKUP_SRC (1U << 4)",
  wrong: "#define FIB_LOOKUP_SRC (1U << 30)",
  scenario: "clusterIP",
};

/** No mistake: a kernel that doesn't have a function which came with Linux 6.2. */
export const BEFORE_LINUX_6_2: Mistake = {
  what: "the kernel can't tell whether a packet has passed a bridge",
  file: "packets.bpf.c",
  right: '#include "conntrack.h"\n',
  wrong: '#include "conntrack.h"\n#define bpf_cast_to_kern_ctx no_such_function\n',
  scenario: "clusterIP",
};

/** Every program has one of its own, and each decision one. */
export const PACKET_MISTAKES: readonly Mistake[] = [
  ...inFile("packets.bpf.c", [
    [
      "turnout_in does nothing",
      "clusterIP",
      "int turnout_in(struct __sk_buff *skb) {\n  return enter(skb, false);",
      "int turnout_in(struct __sk_buff *skb) {\n  return NEXT;",
    ],
    ["what has passed a bridge goes on", "bridges", "if (has_passed_bridge(skb))", "if (0)"],
    [
      "turnout_in_pods takes nobody for a pod",
      "podDevices",
      "int turnout_in_pods(struct __sk_buff *skb) {\n  return enter(skb, true);",
      "int turnout_in_pods(struct __sk_buff *skb) {\n  return enter(skb, false);",
    ],
    [
      "turnout_out lets all go",
      OF_KIT,
      "int turnout_out(struct __sk_buff *skb) {\n",
      "int turnout_out(struct __sk_buff *skb) {\n  return NEXT;\n",
    ],
    [
      "turnout_out decides on what is forwarded",
      "out",
      "if (skb->ingress_ifindex || !read_packet(skb, &packet))",
      "if (!read_packet(skb, &packet))",
    ],
    ["turnout_out forgets source ranges", OF_KIT, "  if (!is_blocked(service, &packet.from))\n    return NEXT;\n", "  return NEXT;\n"],
    ["turnout_out sends what sockets dropped", OF_KIT, "  if (service->host.verdict != SERVE)\n    return TC_ACT_SHOT;\n", ""],
    ["turnout_out counts nothing", "out", "  count_outside(service->row);\n", ""],
    ["pods are outside", OF_KIT, "if (is_of_pods || is_pod(from))", "if (is_of_pods)"],
    ["the host is outside", "origins", "has_address(from, OWN) ? &service->host : &service->outside", "&service->outside"],
    [
      "the host comes before pods",
      "origins",
      "  if (is_of_pods || is_pod(from))\n    return &service->pod;\n",
      "  if (has_address(from, OWN))\n    return &service->host;\n  if (is_of_pods || is_pod(from))\n    return &service->pod;\n",
    ],
    ["outside gets what pods get", OF_KIT, "&service->host : &service->outside", "&service->host : &service->pod"],
    ["source ranges let all in", OF_KIT, "is_outside ? DROP : choice->verdict", "choice->verdict"],
    ["who is outside counts as no endpoint of this node", "sourceRanges", "count_outside(row)", "count(row, DROP, true)"],
    [
      "source ranges keep all out",
      OF_KIT,
      "return service->ranges && !bpf_map_lookup_elem(&source_ranges, &range);",
      "return service->ranges;",
    ],
    ["services without source ranges keep all out", "clusterIP", "return service->ranges && !", "return !"],
    ["source ranges of all services are one", OF_KIT, "  __builtin_memcpy(range.ranges, &service->ranges, sizeof(range.ranges));\n", ""],
    ["nobody is masqueraded", "clusterIP", "bool masquerade = choice->masquerade;", "bool masquerade = false;"],
    ["all are masqueraded", OF_KIT, "bool masquerade = choice->masquerade;", "bool masquerade = true;"],
    ["a pod that gets to itself isn't masqueraded", "hairpin", "(masquerade || is_hairpin)", "masquerade"],
    ["endpoints at the node see a masqueraded client", "hostEndpoint", " && !has_address(&chosen->address, OWN)", ""],
    [
      "masqueraded clients have the primary address",
      "external",
      "FIB_LOOKUP_SRC) == BPF_FIB_LKUP_RET_SUCCESS",
      "FIB_LOOKUP_SRC) == BPF_FIB_LKUP_RET_BLACKHOLE",
    ],
    ["refusals are dropped", OF_KIT, "return verdict == DROP ?", "return verdict != SERVE ?"],
    ["refusals go on unmarked", OF_KIT, "      skb->mark = REFUSED_MARK;\n", "      skb->mark = 0;\n"],
    ["drops go on", OF_KIT, "return verdict == DROP ? TC_ACT_SHOT : NEXT;", "return NEXT;"],
    [
      "drops are refused",
      OF_KIT,
      "    if (verdict == REJECT)\n      skb->mark = REFUSED_MARK;\n    return verdict == DROP ? TC_ACT_SHOT : NEXT;",
      "    if (verdict != SERVE)\n      skb->mark = REFUSED_MARK;\n    return NEXT;",
    ],
    ["the end of a forgotten connection begins a flow", "strays", "    if (packet.is_ending)\n      return TC_ACT_SHOT;\n", ""],
    ["nothing is counted", "clusterIP", "    else\n      count(row, verdict, true);\n", ""],
    ["others' packets are served", "readings", "skb->pkt_type != PACKET_HOST || ", ""],
    [
      "what sockets of pods were served is decided on again",
      "servedSockets",
      "if (!find_service(&packet.to) || is_of_served_socket(skb, &packet))",
      "if (!find_service(&packet.to))",
    ],
    [
      "what sockets of the host were served is decided on again",
      "servedSockets",
      "if (!service || is_of_served_socket(skb, &packet))",
      "if (!service)",
    ],
    ["what is decided is decided again", "established", "is_tracked(skb, &packet, taker) || taker == HOST", "taker == HOST"],
    ["answers are taken for questions", "answersToNodePorts", "is_tracked(skb, &packet, taker) || taker == HOST", "taker == HOST"],
  ]),
  ...inFile("conntrack.h", [
    ["a connection that has ended is kept to", "reopened", "state == TCP_CONNTRACK_TIME_WAIT || state == TCP_CONNTRACK_CLOSE", "false"],
    ["connections that were closed are kept to", "reopened", "return state == TCP_CONNTRACK_TIME_WAIT || ", "return "],
    ["connections that were reset are kept to", "reopened", " || state == TCP_CONNTRACK_CLOSE;", ";"],
    [
      "a client's port is kept where another flow has it",
      "onePort",
      "  refused |= bpf_ct_set_nat_info(fresh, &from, -1, NF_NAT_MANIP_SRC);\n",
      "",
    ],
    ["the source address is never rewritten", "clusterIP", "inet_address(packet, source)", "inet_address(packet, &packet->from)"],
    [
      "the endpoint's port is the service's",
      "clusterIP",
      "bpf_ntohs(chosen->port), NF_NAT_MANIP_DST",
      "bpf_ntohs(packet->to.port), NF_NAT_MANIP_DST",
    ],
    ["flows end before they begin", "fragments", "#define FIRST_MS 5000", "#define FIRST_MS 0"],
  ]),
  ...inFile("packet.h", [
    ["options of IPv4 are taken for ports", "readings", "ip.ihl * 4", "20"],
    ["later fragments of IPv4 are read", "readings", " || ip.frag_off & bpf_htons(FRAGMENT_OFFSET)", ""],
    ["later fragments of IPv6 are read", "readings", "if (is_fragment && header.fragment_offset & bpf_htons(FRAGMENT_OFFSET6))", "if (0)"],
    ["extension headers are not passed over", "readings", "    if (!is_fragment && next", "    if (!is_fragment || next"],
    [
      "a fragment's header has a length",
      "fragments",
      "offset += is_fragment ? 8 : (header.length + 1) * 8;",
      "offset += (header.length + 2) * 8;",
    ],
    [
      "SCTP is read as UDP",
      "readings",
      "packet->to.protocol != IPPROTO_UDP)\n    return false;",
      "packet->to.protocol != IPPROTO_UDP)\n    packet->to.protocol = IPPROTO_UDP;",
    ],
    ["IPv6 is not read", "clusterIP", "    return read_packet6(skb, packet);\n", "    return false;\n"],
    ["what ends a connection is anything", "strays", "packet->is_ending = flags & (FIN | RST);", "packet->is_ending = flags;"],
    ["resets don't end a connection", "strays", "flags & (FIN | RST)", "flags & FIN"],
  ]),
  ...inFile("choose.h", [
    [
      "node ports answer on all addresses of the node",
      "external",
      "!has_address(&to->address, NODE_PORTS)",
      "!has_address(&to->address, OWN)",
    ],
    ["affinity is one for all clients", OF_KIT, ".address = *from}};", ".address = {}}};"],
    ["the first endpoint gets all packets", OF_KIT, "choice->count > 1 ? number % choice->count : 0", "0"],
  ]),
];
