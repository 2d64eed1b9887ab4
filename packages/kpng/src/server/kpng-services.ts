import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "../link/paths.ts";
import { watchService, type GrpcService, type PeerRightsOf, type StoreApi, type StoreApiOptions } from "@turnout/server/serve";
import { DESCRIPTORS } from "../gen/descriptors.ts";
import { ImageRegistry } from "./image-registry.ts";
import { KpngSession, type KpngQuestion } from "./kpng-session.ts";

/** Serve kpng's two protocols from a store; one set of images for all doors, which differ in rights. */
export function createKpngApi(options: StoreApiOptions): StoreApi {
  const { store, onlyNode, imagesMax, traffic, log, report, admit } = options;
  const registry = new ImageRegistry(store, imagesMax, report);
  const services = (rightsOf: PeerRightsOf): readonly GrpcService[] => {
    const service = (path: string, question: KpngQuestion): GrpcService =>
      watchService(path, rightsOf, (call, rights) =>
        admit(call, rights, (slot) => new KpngSession(call, question, { registry, rights, slot, onlyNode, traffic, log }).run()),
      );
    return [service(LOCAL_WATCH_PATH, "node"), service(GLOBAL_WATCH_PATH, "cluster")];
  };
  return {
    names: ["localv1.Sets", "globalv1.Sets"],
    descriptors: DESCRIPTORS,
    services,
    get images() {
      return registry.size;
    },
  };
}
