import { describe, expect, it } from "vitest";
import { describeObject } from "./describe.ts";
import { layoutName } from "./names.ts";
import { ChainRules } from "./objects.ts";
import type { ChainObject, DestinationValue, ServiceObject, TableObject } from "./objects.ts";
import { ANOTHER } from "./observe.ts";

const VALUE: DestinationValue = {
  verdict: "goto pick-tcp",
  comment: "",
  cluster: ["", "", "10.1.1.1 . 8080", "10.1.2.1 . 8080"],
  local: [],
};
const service = (value: Partial<DestinationValue> = {}): ServiceObject => ({
  kind: "service",
  key: "10.96.0.1 . tcp . 80",
  value: { ...VALUE, ...value } as DestinationValue,
});
const chain = (value: string): ChainObject => ({ kind: "chain", key: "dispatch", value, rules: ChainRules.NONE });

describe("what the kernel holds otherwise", () => {
  it("endpoints: who is sent to whom, and the map that shows it", () => {
    expect(describeObject(service(), "IPv4", service({ cluster: ["", "", "10.1.1.1 . 8080", "", "10.9.9.9 . 8080"] }))).toMatchObject({
      differs:
        "the kernel sends packets for 10.96.0.1:80/TCP to 10.1.1.1:8080, 10.9.9.9:8080, should: 10.1.1.1:8080, 10.1.2.1:8080 (map endpoints-tcp of table ip turnout)",
      show: "nft list map ip turnout endpoints-tcp | grep -F '10.96.0.1 . 80 . '",
    });
  });

  it("endpoints at places where packets seldom find them", () => {
    const held = service({ cluster: ["10.1.1.1 . 8080", "10.1.2.1 . 8080"] });
    expect(describeObject(service(), "IPv4", held).differs).toContain("10.1.2.1:8080, which lie at other places (map");
  });

  it("a verdict: what the kernel does, and the element that says so", () => {
    const { differs, show } = describeObject(service(), "IPv4", service({ verdict: "drop" }));
    expect(differs).toContain('the kernel does "drop", should: "goto pick-tcp"');
    expect(show).toBe("nft get element ip turnout services '{ 10.96.0.1 . tcp . 80 }'");
  });

  it("an element that was removed, though its endpoints are there: just that one", () => {
    expect(describeObject(service(), "IPv4", service({ verdict: "" }))).toEqual({
      what: "element 10.96.0.1 . tcp . 80 of map services (table ip turnout)",
      show: "nft get element ip turnout services '{ 10.96.0.1 . tcp . 80 }'",
      isGone: true,
    });
  });

  it.each([
    ["pods are told", "goto offcluster-masq-pick-tcp.pick-tcp"],
    ["everything is masqueraded", "goto masq-pick-tcp"],
  ])("a verdict of other flags: %s", (_name, verdict) => {
    expect(describeObject(service(), "IPv4", service({ verdict }))).toMatchObject({ isOfOtherSettings: true });
  });

  it("a verdict of other flags, and an endpoint that no flags choose", () => {
    const held = service({ verdict: "goto masq-pick-tcp", cluster: ["10.9.9.9 . 8080"] });
    expect(describeObject(service(), "IPv4", held)).toMatchObject({
      isOfOtherSettings: true,
      differs: expect.stringContaining("to 10.9.9.9:8080, should: 10.1.1.1:8080") as unknown,
    });
    expect(describeObject(service(), "IPv4", service({ verdict: "goto masq-pick-tcp" }))).not.toHaveProperty("differs");
  });

  it("a comment: whether there are any is an option", () => {
    expect(describeObject(service(), "IPv4", service({ comment: "shop/cart:http" }))).toMatchObject({ isOfOtherSettings: true });
  });

  it("the table: of other flags where it counts, or doesn't", () => {
    const table = (value: string): TableObject => ({ kind: "table", key: "layout", value });
    expect(describeObject(table(layoutName(false)), "IPv4", table(layoutName(true)))).toMatchObject({ isOfOtherSettings: true });
    expect(describeObject(table(layoutName(false)), "IPv4", table(ANOTHER))).toMatchObject({
      differs: "table ip turnout has other sets, maps or hooks than this version makes: some were deleted, or it is another version's",
    });
  });

  it("a chain: of other flags where it is whole, changed by somebody where it isn't", () => {
    expect(describeObject(chain("01e2/2"), "IPv4", chain("2131/2"))).toMatchObject({ isOfOtherSettings: true });
    expect(describeObject(chain("01e2/2"), "IPv4", chain("tampered  0"))).toMatchObject({
      differs: "chain dispatch of table ip turnout is not as Turnout wrote it: rules were added, deleted or changed",
    });
  });
});
