import { expect, it } from "vitest";
import { IMAGE_RECIPES, referenceFor, referencesOf } from "./image-names.ts";

const LISTED = ["registry.k8s.io/pause:3.10.2", "registry.k8s.io/e2e-test-images/agnhost:2.63.0", "registry.k8s.io/pause-else:1"];

it("an image of the suite has the tag that the suite asks for", () => {
  expect(referenceFor("pause", LISTED)).toBe("registry.k8s.io/pause:3.10.2");
  expect(referenceFor("agnhost", LISTED)).toBe("registry.k8s.io/e2e-test-images/agnhost:2.63.0");
});

it("an image of no suite has its own", () => {
  expect(referenceFor("coredns", [])).toMatch(/:v1\.\d+\.\d+$/);
});

it("a name that the suite no longer has is told", () => {
  expect(() => referenceFor("busybox", LISTED)).toThrow("--list-images has no registry.k8s.io/e2e-test-images/busybox");
  expect(() => referenceFor("nothing", LISTED)).toThrow("no recipe for nothing");
});

it("an image of which the suite has several versions is all of them", () => {
  const [pause] = IMAGE_RECIPES.filter(({ name }) => name === "pause");
  const listed = [...LISTED, "registry.k8s.io/pause:3.9"];
  expect(pause && referencesOf(pause, listed)).toEqual(["registry.k8s.io/pause:3.10.2", "registry.k8s.io/pause:3.9"]);
});
