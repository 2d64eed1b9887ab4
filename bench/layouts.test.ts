import { spawnSync } from "node:child_process";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { layoutChangeText, layoutText } from "./layouts.ts";
import type { Layout } from "./layouts.ts";

const LAYOUTS: readonly Layout[] = ["A", "B"];
const shape = { services: 20, endpoints: 3 };
const count = (text: string, part: RegExp): number => text.match(part)?.length ?? 0;

describe("the baselines", () => {
  it("A has a chain per endpoint and an anonymous verdict map per service", () => {
    const text = layoutText("A", shape);
    expect(count(text, /^add chain ip kube-proxy service-[0-9A-F]{8}-bench/gm)).toBe(20);
    expect(count(text, /^add chain ip kube-proxy endpoint-[0-9A-F]{8}-bench/gm)).toBe(60);
    expect(count(text, /numgen random mod 3 vmap \{/g)).toBe(20);
    expect(count(text, /jump mark-for-masquerade$/gm)).toBe(80);
    expect(count(text, /dnat to 11\.[\d.]+:8080/g)).toBe(60);
  });

  it("B has one dnat rule with an anonymous map per service, and no chain per endpoint", () => {
    const text = layoutText("B", shape);
    expect(count(text, /^add chain ip kube-proxy service-[0-9A-F]{8}-/gm)).toBe(20);
    expect(text).not.toContain("chain ip kube-proxy endpoint-");
    expect(count(text, /dnat ip addr \. port to numgen random mod 3 map \{/g)).toBe(20);
  });

  it("B sends a service with one endpoint there without a map", () => {
    expect(layoutText("B", { services: 1, endpoints: 1 })).toContain("meta l4proto tcp dnat to 11.0.0.1:8080");
  });

  it.each(LAYOUTS)("%s is taken by nft, and so is a change and its undoing", needs("root", "netns", "nft>=1.0.1"), (layout) => {
    const nft = (input: string, then: string): string => {
      const { status, stdout, stderr } = spawnSync("unshare", ["--net", "sh", "-c", `nft -f - && ${then}`], { input, encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return stdout;
    };
    const list = "nft list ruleset";
    const whole = layoutText(layout, shape);
    const changed = nft(`${whole}${layoutChangeText(layout, 4, shape, 1)}`, list);
    expect(count(changed, /numgen random mod 3/g)).toBe(19);
    expect(count(changed, /numgen random mod 2/g)).toBe(1);
    const back = nft(`${whole}${layoutChangeText(layout, 4, shape, 1)}${layoutChangeText(layout, 4, shape)}`, list);
    expect(back).toBe(nft(whole, list));
  });
});
