import { parseIP } from "@turnout/core";
import { protocolName, protocolNumber } from "./argument-words.ts";
import { not } from "./extension.ts";
import type { Extension, Given, MatchBody } from "./extension.ts";
import { usage } from "./refusal.ts";
import { isInNetwork, readNetwork } from "./rule.ts";
import type { Walk } from "./walk.ts";

interface Part {
  readonly text: string;
  test(walk: Walk): boolean;
}

/**
 * Connections of IPVS, by their virtual server. Methods, directions and controlling connections are not there.
 *
 * Edges: the first packet of a connection is one of IPVS's once IPVS has had it: behind INPUT's filter, or behind OUTPUT's nat.
 */
export const ipvsMatch: Extension<MatchBody> = {
  name: "ipvs",
  options: [
    { name: "ipvs", isFlag: true, isInvertible: true },
    { name: "vproto", isInvertible: true },
    { name: "vaddr", isInvertible: true },
    { name: "vport", isInvertible: true },
  ],
  finish(given, { family }): MatchBody {
    const isOfIpvs = given.get("ipvs");
    if (given.size === 0) throw usage("IPVS: At least one option is required");
    const parts: readonly Part[] = [
      ...part(given.get("vproto"), (option) => {
        const name = protocolName(option.value);
        const number = protocolNumber(name);
        return { text: `--vproto ${number}`, test: ({ virtual }) => virtual?.protocol === name };
      }),
      ...part(given.get("vaddr"), (option) => {
        const network = readNetwork(option.value, family);
        const [address = ""] = option.value.split("/", 1);
        const isWhole = network.prefixLength === (family === "IPv4" ? 32 : 128);
        return {
          // Bits beyond the mask stay.
          text: `--vaddr ${parseIP(address)?.text}${isWhole ? "" : `/${network.prefixLength}`}`,
          test: ({ virtual }) => virtual !== undefined && isInNetwork(network, virtual.addressValue),
        };
      }),
      ...part(given.get("vport"), (option) => {
        if (!/^\d+$/.test(option.value)) throw usage(`Port "${option.value}" does not resolve to anything.\n`);
        // The tool lets higher ones wrap.
        const port = Number(option.value) & 0xffff;
        return { text: `--vport ${port}`, test: ({ virtual }) => virtual?.port === port };
      }),
    ];
    const isStandalone = parts.length === 0;
    if (isOfIpvs?.isInverted === true && !isStandalone) throw usage("! --ipvs cannot be together with other options");
    const words = isOfIpvs !== undefined && isStandalone ? [`${not(isOfIpvs)}--ipvs`] : parts.map(({ text }) => text);
    return {
      name: "ipvs",
      text: `-m ipvs ${words.join(" ")}`,
      test: (walk) => (walk.virtual !== undefined) !== (isOfIpvs?.isInverted ?? false) && parts.every((one) => one.test(walk)),
    };
  },
};

/** Nothing, or a part that may be inverted. */
function part(option: Given | undefined, read: (option: Given) => Part): readonly Part[] {
  if (option === undefined) return [];
  const { text, test } = read(option);
  return [{ text: `${not(option)}${text}`, test: (walk) => test(walk) !== option.isInverted }];
}
