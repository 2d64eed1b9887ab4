import { describe, expect, it } from "vitest";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawService, rawSlice } from "../testing/index.ts";
import type { RawObject } from "../testing/index.ts";
import type { ExplainedState, KnownSource } from "./question.ts";
import { walkPacket } from "./walk.ts";
import type { Walk } from "./walk.ts";

const FILES: KnownSource = { name: "file:/etc/services", problems: [], isEmpty: false };

interface Asked {
  readonly to: string;
  readonly port?: number;
  readonly objects?: readonly RawObject[];
  readonly source?: Partial<KnownSource>;
  readonly issues?: ExplainedState["issues"];
  readonly serviceCIDRs?: readonly string[];
}

function walk({ to, port = 80, objects = [], source = {}, issues = [], serviceCIDRs }: Asked): Walk {
  const node = serviceCIDRs === undefined ? {} : { serviceCIDRs };
  return walkPacket(explainedState(objects, { node, issues, source: { ...FILES, ...source } }), askedPacket({ destination: to, port }));
}

describe("a source without any Service", () => {
  const source = { isEmpty: true, wasFilled: true };

  it.each([
    ["a cluster IP", "10.96.0.10", 80],
    ["an address that nobody has", "192.0.2.9", 80],
    ["a node port", "172.18.0.1", 30_081],
    ["a node port on loopback", "127.0.0.1", 30_081],
  ])("is to blame for %s", (_name, to, port) => {
    const [cause] = walk({ to, port, source }).causes;
    expect(cause).toMatchObject({ id: "no_services", show: ["turnout status", "ls -la /etc/services"] });
    expect(cause?.says).toMatch(/^no Service at all is known here from source file:\/etc\/services; it had some before/);
    expect(cause).not.toHaveProperty("isSure");
  });

  it("is not to blame where somebody else has the address", () => {
    expect(walk({ to: "10.1.1.9", source }).causes).toEqual([]);
    expect(walk({ to: "172.18.0.1", port: 22, source }).causes).toEqual([]);
  });

  it("is a guess where it never had one, and says that it is not followed", () => {
    const asked = { to: "10.96.0.10", source: { isEmpty: true, name: "kube", problems: ["Services: refused"] } };
    const [cause] = walk(asked).causes;
    expect(cause).toMatchObject({ id: "no_services", isSure: false, show: ["turnout status", "kubectl get services -A"] });
    expect(cause?.says).toMatch(/the source is not followed: Services: refused$/);
    expect(walk({ ...asked, serviceCIDRs: ["10.96.0.0/16"] }).causes[0]).not.toHaveProperty("isSure");
  });
});

describe("a source that has Services", () => {
  const web = rawService("web", { clusterIP: "10.96.0.10", ports: [{ name: "http", port: 80, protocol: "TCP" }] });
  const objects = [web, rawSlice("web", [{ ip: "10.1.1.5", node: "node1" }])];
  const broken = { object: "/etc/services/a.yaml:3", what: "the YAML can't be read", hint: "mend line 3" };
  const about = { object: "Service shop/web", what: "something", hint: "nothing" };

  it("has files shown where Services come from files, and no cluster asked", () => {
    const [cause] = walk({ to: "10.96.0.11", objects }).causes;
    expect(cause).toMatchObject({ id: "unknown_address", show: ["grep -rnwF -e '10.96.0.11' /etc/services"] });
    const [empty] = walk({ to: "10.96.0.10", objects: [web] }).causes;
    expect(empty).toMatchObject({ id: "no_endpoints", show: ["grep -rnwF -e 'web' /etc/services"] });
    expect(empty).not.toHaveProperty("commands");
    expect(walk({ to: "10.96.0.10", objects: [web], source: { name: "kube" } }).causes[0]?.show?.[0]).toMatch(/^kubectl /);
  });

  it("that reported a broken file is told with what is missing, and so is one that is not followed", () => {
    const [, second, ...others] = walk({ to: "10.96.0.11", objects, issues: [about, broken] }).causes;
    expect(second).toMatchObject({ id: "source_problem", isSure: false, show: ["turnout status"], fix: "mend line 3" });
    expect(second?.says).toContain("/etc/services/a.yaml:3: the YAML can't be read");
    expect(others).toEqual([]);
    expect(walk({ to: "10.96.0.11", objects, source: { problems: ["files: gone"] } }).causes.map(({ id }) => id)).toContain(
      "source_problem",
    );
    expect(walk({ to: "10.96.0.10", objects, issues: [broken] }).causes).toEqual([]);
  });

  it("and is not followed is worth a note where nothing is wrong", () => {
    const { causes, notes } = walk({ to: "10.96.0.10", objects, source: { problems: ["files: gone"] } });
    expect(causes).toEqual([]);
    expect(notes).toEqual([expect.stringContaining("file:/etc/services is not followed (files: gone)")]);
  });
});
