export { buildImage } from "./build-image.ts";
export { imageNft } from "./image-nft.ts";
export type { ImageNft } from "./image-nft.ts";
export type { BuiltImage, ImagePlace } from "./build-image.ts";
export type { Sources } from "./image-trees.ts";
export type { Arch } from "./platforms.ts";
export { RECIPES } from "./recipes.ts";
export type { ImageName, Recipe, Tools } from "./recipes.ts";
