/** Options shared by the generator of types and by loading at run time, which must agree. */
export const loaderOptions = { longs: String, enums: String, defaults: true, oneofs: true, keepCase: false };
