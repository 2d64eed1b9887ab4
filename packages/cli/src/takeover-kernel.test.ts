import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

/** What the real kube-proxy wrote (bench/kube-proxy/record.ts). */
const TABLES = fileURLToPath(new URL("../../backend-nft/test/kube-proxy/few.nft", import.meta.url));
const CHAINS = fileURLToPath(new URL("../../backend-iptables/test/kube-proxy/masquerade-all.IPv4.save", import.meta.url));
/** Prints them without the rules whose counters the kernel would have to be given first. */
const SAVED = `grep -v nfacct ${CHAINS}`;
/** As kubelet makes them, up to 1.27 with chains whose names kube-proxy has, too. */
const KUBELET = `*mangle
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP
COMMIT
*nat
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MASQUERADE
COMMIT
`;

/** A host on which all programs are installed but nft. */
const WITHOUT_NFT = "mkdir -p bin; ln -sf /usr/sbin/* bin; rm bin/nft; PATH=$PWD/bin:/usr/bin:/bin";
const WITHOUT_NFT_CHOSEN = {
  backend: "iptables",
  because: expect.stringMatching(/^this host can run it, and not the first: .*nft is not installed/) as unknown,
};

/** What a host gets before the proxy starts, what the proxy says that it chose and why, and the start of what is in force then. */
interface Case {
  readonly before: string;
  readonly chosen: Readonly<Record<string, unknown>>;
  readonly flags?: string;
}

/** Play a case in a fresh network namespace; the log line of the choice. */
async function choiceOn({ before, flags = "" }: Case): Promise<unknown> {
  const script = `set -e; ${before}
    $T run --source file:cart.yaml --node-name node1 --once --logging-format json ${flags}`;
  const { code, err } = await scriptInNamespace({ "cart.yaml": CART, "kubelet.save": KUBELET }, script);
  if (code !== 0) throw new Error(err);
  const lines = err.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as { readonly msg: string }).find(({ msg }) => msg === "backend chosen");
}

describe(
  'mode: "" goes on from what is in force',
  { ...needs("root", "netns", "ip", "nft>=1.0.1", "iptables-nft>=1.8.0", "iptables-legacy"), timeout: 120_000 },
  () => {
    test.each<readonly [name: string, ran: Case]>([
      ["nothing", { before: "", chosen: { backend: "nft", because: "it is the first that this host can run" } }],
      ["nothing, without nft", { before: WITHOUT_NFT, chosen: WITHOUT_NFT_CHOSEN }],
      ["nothing, without nft, in a dry run", { before: WITHOUT_NFT, flags: "--dry-run", chosen: WITHOUT_NFT_CHOSEN }],
      [
        "kube-proxy's nftables mode",
        { before: `nft -f ${TABLES}`, chosen: { backend: "nft", because: "table ip kube-proxy in force here" } },
      ],
      [
        "kube-proxy's iptables mode, in the legacy variant beside kubelet's chains in the other",
        {
          before: `${SAVED} | iptables-legacy-restore; iptables-nft-restore kubelet.save`,
          chosen: { backend: "iptables", because: expect.stringContaining("chains of iptables-legacy (legacy)"), variant: "legacy" },
        },
      ],
      [
        "what is in force, with the gate off",
        {
          before: `${SAVED} | iptables-legacy-restore`,
          flags: "--feature-gates TurnoutTakeOver=false",
          chosen: { backend: "nft", because: "it is the first that this host can run" },
        },
      ],
      [
        "kube-proxy's iptables mode in both variants, of which kubelet's is taken",
        {
          before: `${SAVED} | iptables-legacy-restore; ${SAVED} | iptables-nft-restore; iptables-nft-restore --noflush kubelet.save`,
          chosen: {
            backend: "iptables",
            because: expect.stringMatching(/chains of iptables-nft \(nft\) and .*chains of iptables-legacy \(legacy\) in force here/),
          },
        },
      ],
      ["kubelet's chains alone", { before: "iptables-nft-restore kubelet.save", chosen: { backend: "nft" } }],
      [
        "our table, beside chains of kube-proxy's",
        {
          before: `nft add table ip turnout; ${SAVED} | iptables-nft-restore`,
          chosen: { backend: "nft", because: "table ip turnout in force here" },
        },
      ],
    ])("%s", async (_name, ran) => {
      expect(await choiceOn(ran)).toMatchObject({
        ...ran.chosen,
        hint: expect.stringContaining("--backend nft|iptables") as unknown,
      });
    });
  },
);
