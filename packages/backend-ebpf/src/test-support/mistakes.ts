// Deliberate mistakes in the C, each with the scenario that catches it.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProgramFile } from "../hooks.ts";
import { compilePrograms, copyPrograms } from "./other-build.ts";

/** One place where the C says something else than it should. */
export interface Mistake {
  readonly what: string;
  readonly file: "sockets.bpf.c" | "packets.bpf.c" | "packet.h" | "conntrack.h" | "choose.h";
  /** Text that is there once. */
  readonly right: string;
  readonly wrong: string;
  readonly scenario: string;
}

/** The scenario of a mistake that the conformance kit finds: conformance.test.ts says in which of its own. */
export const OF_KIT = "kit";

const inSockets = (what: string, scenario: string, right: string, wrong: string): Mistake => ({
  what,
  file: "sockets.bpf.c",
  right,
  wrong,
  scenario,
});
const inChoice = (what: string, scenario: string, right: string, wrong: string): Mistake => ({
  what,
  file: "choose.h",
  right,
  wrong,
  scenario,
});
/** A program that does nothing. */
const idle = (name: string, scenario: string): Mistake => {
  const begin = `int ${name}(struct bpf_sock_addr *ctx) {\n`;
  return inSockets(`${name} does nothing`, scenario, begin, `${begin}  return ALLOW;\n`);
};

/** Every program has one of its own, and each decision one. */
export const MISTAKES: readonly Mistake[] = [
  idle("turnout_conn4", OF_KIT),
  idle("turnout_conn6", OF_KIT),
  idle("turnout_send4", OF_KIT),
  idle("turnout_send6", OF_KIT),
  idle("turnout_recv4", OF_KIT),
  idle("turnout_recv6", OF_KIT),
  idle("turnout_peer4", OF_KIT),
  idle("turnout_peer6", OF_KIT),
  inSockets(
    "turnout_close does nothing",
    "closed",
    "int turnout_close(struct bpf_sock *sk) {\n",
    "int turnout_close(struct bpf_sock *sk) {\n  return ALLOW;\n",
  ),
  inSockets("closed sockets of IPv6 are remembered", "closed", "sk->family == AF_INET ?", "1 ?"),
  inSockets(
    "the port stays",
    OF_KIT,
    "    ctx->user_ip4 = chosen.address.words[3];\n    ctx->user_port = chosen.port;",
    "    ctx->user_ip4 = chosen.address.words[3];",
  ),
  inSockets(
    "any protocol is asked as TCP",
    OF_KIT,
    "question->to.protocol = ctx->protocol;\n",
    "question->to.protocol = ctx->protocol == IPPROTO_UDP ? IPPROTO_TCP : ctx->protocol;\n",
  ),
  inSockets("a refusal is EPERM", OF_KIT, "bpf_set_retval(-ECONNREFUSED);", ""),
  inSockets("what is dropped is refused", OF_KIT, "  case REJECT:\n", "  case DROP:\n  case REJECT:\n"),
  inSockets("the host gets what pods get", OF_KIT, "is_host ? &service->host : &service->pod", "&service->pod"),
  inSockets("pods get what the host gets", OF_KIT, "is_host ? &service->host : &service->pod", "&service->host"),
  inSockets("namespaces can't opt out", "optOut", "if (bpf_map_lookup_elem(&opted_out, &namespace))", "if (0)"),
  inSockets("services can't opt out", "optOut", "!service || service->flags & (is_host ? HOST_PASS : PODS_PASS)", "!service"),
  inSockets("Services opt out for the host, too", "optOut", "is_host ? HOST_PASS : PODS_PASS", "PODS_PASS"),
  inSockets("source ranges of pods are the host's", OF_KIT, "is_host ? HOST_PASS : PODS_PASS", "HOST_PASS"),
  inSockets("each datagram gets another endpoint", "oneSocket", "  note(&chosen_udp, &asked, chosen);\n", ""),
  inSockets("nobody keeps to an endpoint", "kept", "!is_kept(service, choice, before, chosen) && ", ""),
  inSockets("what was chosen once is kept for good", "kept", "return is_in_list(choice, chosen);", "return true;"),
  inSockets("sockets of TCP are noted among those of UDP", "closed", "if (question->to.protocol == IPPROTO_TCP)", "if (0)"),
  inSockets("answers go to the service", "nodePortAsClient", "if (before && !before->port)", "if (0)"),
  inSockets("who asked a service is cut off from it", "nodePortAsClient", "if (!bpf_map_lookup_elem(&chosen_udp, &peer))", "if (1)"),
  inSockets(
    "any peer that is heard is answered",
    "nodePortAsClient",
    "!has_address(&from->address, OWN) || !find_service(&destination)",
    "0",
  ),
  inChoice("refusals count as connections", "refusals", "of->rejects += 1", "of->connections += 1"),
  inChoice("datagrams count as connections", "nodePortAsClient", "of->datagrams += 1", "of->connections += 1"),
  inSockets("all namespaces are one client", "affinityOfTwo", "(__u32)(namespace >> 32), (__u32)namespace}", "0, 0}"),
  inSockets(
    "connected sockets are asked again",
    OF_KIT,
    "&& is_connected(ctx, question) && bpf_map_lookup_elem(&asked_udp, &peer)",
    "&& false",
  ),
  inSockets("connected sockets forget what they asked for", OF_KIT, "sk && sk->state == BPF_TCP_ESTABLISHED", "0"),
  inSockets(
    "an endpoint that is asked by its own address shows as its service",
    "oneSocket",
    "bpf_map_delete_elem(&chosen_udp, &sender);",
    "",
  ),
  inSockets("what was asked first is remembered for good", "twoServices", "if (!before || !is_same_end(before, end))", "if (!before)"),
  inChoice("the first endpoint gets all", OF_KIT, "choice->count > 1 ? number % choice->count : 0", "0"),
  inChoice(
    "the last endpoint gets none",
    OF_KIT,
    "choice->count > 1 ? number % choice->count : 0",
    "choice->count > 1 ? number % (choice->count - 1) : 0",
  ),
  inChoice("node ports answer on any address", "addresses", "service || !has_address(&to->address, NODE_PORTS)", "service"),
  inChoice("0.0.0.0 is a node port's address", "addresses", "if (is_same(&port.address, &to->address))", "if (0)"),
  inChoice("affinity never ends", OF_KIT, "&& is_recent(before, service, keep.last_ns)", ""),
  inChoice("affinity keeps to endpoints that are gone", OF_KIT, "if (is_in_list(choice, chosen)) {", "if (1) {"),
  inChoice("halving goes the wrong way", OF_KIT, "if (order < 0)", "if (order > 0)"),
  inChoice(
    "affinity is not renewed",
    OF_KIT,
    "        bpf_map_update_elem(&affinity, &place, &keep, BPF_ANY);\n        return true;",
    "        return true;",
  ),
  inChoice(
    "affinity is forgotten",
    OF_KIT,
    "    keep.endpoint = *chosen;\n    bpf_map_update_elem(&affinity, &place, &keep, BPF_ANY);\n  }\n  return true;",
    "  }\n  return true;",
  ),
];

/** Compile programs with a mistake, call `run` with the object file, and remove it. @throws {Error} when the text isn't there once. */
export async function withMistake<T>(
  { file, right, wrong }: Mistake,
  run: (objectFile: string) => Promise<T>,
  program: ProgramFile = "sockets",
): Promise<T> {
  const folder = copyPrograms(tmpdir());
  try {
    const source = readFileSync(join(folder, file), "utf8");
    if (source.split(right).length !== 2) throw new Error(`${file} has this once: ${right}`);
    writeFileSync(
      join(folder, file),
      source.replace(right, () => wrong),
    );
    return await run(compilePrograms(folder, program));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
