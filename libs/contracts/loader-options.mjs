/** One set of options for the generator of types and for loading at run time: they must agree. */
export const loaderOptions = { longs: String, enums: String, defaults: true, oneofs: true, keepCase: false };
