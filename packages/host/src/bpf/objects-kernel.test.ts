import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { onStage } from "../test-support/bpf-stage.ts";
import type { StageOptions } from "../test-support/bpf-stage.ts";

const execute = (scenario: string, options: StageOptions = {}): Promise<unknown> => onStage("bpf-objects-child.ts", scenario, options);
const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);
// Only there is what libbpf prints collected; see print-capture.ts.
const KSYM = process.arch === "x64" ? ": extern (func ksym) 'turnout_no_such_kfunc': not found in kernel or module BTFs" : "";
const RIGHTS =
  "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; a container needs them too, and a seccomp profile that lets bpf(2) pass";

describe("objects on a real kernel", needs("root", "netns", "bpf"), () => {
  beforeAll(() => buildBpf("packages/host"));

  it("says in one line why an object can't be loaded, and has the verifier's whole log", async () => {
    expect(await execute("refusedObjects")).toEqual({
      said: [
        text(
          /^\[host_unsupported\] this kernel's verifier refuses a BPF program \(EACCES\): careless of refused\.bpf\.o: R\d invalid mem access 'map_value_or_null' \(at "skb->mark = \*mark;", \d+: \(61\) r\d = \*\(u32 \*\)\(r\d \+0\)\)$/,
        ),
        `[host_unsupported] a BPF object can't be loaded (EINVAL): unknown-kfunc.bpf.o${KSYM}`,
        text(/^\[not_found\] there is no such BPF object file: .*\/nothing\.bpf\.o: it is compiled by: npm run build$/),
        text(/^\[invalid_object\] this file is no BPF object \(libbpf 400\d\): .*node$/),
        "[invalid_object] a BPF object has no map of this name: nothing in example.bpf.o",
        "[invalid_object] a BPF object has no program of this name: nothing in example.bpf.o",
      ],
      log: true,
      logs: ["fine: true"],
      programs: ["fine"],
      absent: "[not_found] a BPF object has no program of this name: careless",
      closed: "[not_found] what is closed can't be used: map marks (hash, 1 entries)",
    });
  });

  it("tries a tc program on a packet", async () => {
    expect(await execute("testRun")).toEqual({
      // Only the port is another one.
      passed: { code: 0, fields: { mark: 77, priority: 5, ingressIfindex: 0, ifindex: 1 }, changed: [36, 37], port: 4242 },
      dropped: { code: 2, isSame: true },
      other: { code: -1, isTimed: true },
      counters: [1, 1],
      noEthernet: "[invalid_object] a packet has at least an Ethernet header: program on_ingress",
      hook: "[host_unsupported] a BPF program can't be tried (ENOTSUPP): program on_connect4: only programs for tc can, and not those for cgroup hooks",
    });
  });

  it("tries a program that asks conntrack, and reads the kernel's own struct", needs("conntrack"), async () => {
    expect(await execute("conntrack")).toEqual({ before: "dead0002", isKnown: true });
  });

  it("leaves nothing open and nothing pinned, whatever fails", needs("cgroup2"), async () => {
    expect(await execute("leaks", { hasCgroup: true })).toEqual({ more: 0, pins: ["/link", "/program", "/services"] });
  });
});

describe("a probe of a real kernel", needs("root", "netns", "bpf", "cgroup2"), () => {
  it("finds all there is, and where", async () => {
    expect(await execute("probe")).toEqual({
      before: true,
      bpffs: "/sys/fs/bpf",
      cgroup2: true,
      libbpf: text(/^1\.\d+$/),
      missingHooks: [],
      missingKfuncs: [],
      missing: [],
    });
  });

  it("misses the kernel's types, and what needs them", async () => {
    const message = "[host_unsupported] this kernel does not tell its types (BTF): a kernel with CONFIG_DEBUG_INFO_BTF=y is needed";
    expect(await execute("probeInVain")).toEqual({ btf: message, conntrack: message, others: [] });
  });

  it("says what to install without libbpf", async () => {
    const hide =
      'for file in /usr/lib/*/libbpf.so.1 /lib64/libbpf.so.1; do [ ! -e "$file" ] || mount --bind /dev/null "$(readlink -f "$file")"; done; exec "$@"';
    const missing = "[tool_missing] libbpf 1.0 or later is missing: libbpf.so.1 could not be loaded: install it: apt-get install libbpf1";
    expect(await execute("probeWithoutLibbpf", { before: ["sh", "-c", hide, "sh"] })).toEqual({
      libbpf: null,
      message: missing,
      untried: missing,
      load: text(/^\[tool_missing\] libbpf\.so\.1 could not be loaded: install it: apt-get install libbpf1/),
      hasSockets: true,
    });
  });

  it("says which rights are missing", needs("setpriv"), async () => {
    const dropped = "-net_admin,-sys_admin,-bpf";
    const without = ["setpriv", `--bounding-set=${dropped}`, `--inh-caps=${dropped}`];
    const rights = "rights: permission_denied";
    expect(await execute("probeWithoutRights", { before: without })).toEqual({
      missing: [
        rights,
        "bpffs: host_unsupported",
        ...["batches", "cgroup-hooks", "refusals", "links", "tc", "tcx"].map((one) => `${one}: permission_denied`),
      ],
      rights: `[permission_denied] this process may not load BPF programs: without CAP_BPF, CAP_NET_ADMIN: ${RIGHTS}`,
      load: `[permission_denied] a BPF object can't be loaded (EPERM): example.bpf.o: ${RIGHTS}`,
      map: `[permission_denied] a BPF map can't be made (EPERM): map m (hash, 1 entries): ${RIGHTS}`,
    });
  });

  it("needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and for opening by id CAP_SYS_ADMIN", needs("setpriv"), async () => {
    const runWith = (...names: readonly string[]): Promise<unknown> => {
      const kept = ["-all", "+dac_override", ...names.map((name) => `+${name}`)].join(",");
      return execute("withFewRights", { before: ["setpriv", `--bounding-set=${kept}`, `--inh-caps=${kept}`], hasCgroup: true });
    };
    const byId = text(/^\[permission_denied\] a BPF map can't be opened \(EPERM\): id \d+: run with CAP_SYS_ADMIN, or open it by a pin$/);
    expect(await runWith("bpf", "net_admin", "perfmon")).toEqual({
      missing: [],
      refused: ["nothing", "nothing", "nothing", "nothing", byId],
    });
    const verifier = text(
      /^\[permission_denied\] this kernel's verifier refuses a BPF program \(EPERM\): on_flow of .*CAP_PERFMON.*: run as root, or with CAP_BPF/,
    );
    expect(await runWith("bpf", "net_admin")).toEqual({
      missing: ["rights", "batches", "cgroup-hooks", "refusals", "links", "tc", "tcx"],
      refused: [verifier, "nothing", "nothing", "nothing", byId],
    });
    expect(await runWith("net_admin", "sys_admin")).toEqual({
      missing: [],
      refused: ["nothing", "nothing", "nothing", "nothing", "nothing"],
    });
  });
});
