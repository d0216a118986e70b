// ESLint rule: on the path of every request, a Map or Set that outlives the call that created it must give a reason (ADR 86).
// If entries are added and deleted with each request, its discarded tables in old space keep dead entries alive (ADR 63):
// use LiveMap and LiveList of libs/kernel for that.

/** Functions with such a name return long-lived objects, so their local collections live on too. */
const MAKER = /^(?:create|compose|new)[A-Z]/;
const REASON = /\bkept: \S/;
/** Names of constants, and below, types of collections that never change. */
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
const UNCHANGING = new Set(['ReadonlyMap', 'ReadonlySet']);
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** Finds what a new collection becomes (part of) the value of: a variable, a field of a class, or the result of a function. */
function placeOf(made) {
  for (let [node, child] = [made.parent, made]; node; [node, child] = [node.parent, node]) {
    if (node.type === 'VariableDeclarator' || node.type === 'PropertyDefinition' || node.type === 'ReturnStatement') return node;
    if (FUNCTIONS.has(node.type)) return node.body === child ? node : undefined;
    // Passed to a call: the callee decides how long it lives.
    if (node.type === 'CallExpression' || node.type === 'NewExpression' || /(?:Statement|Declaration)$/.test(node.type)) return undefined;
  }
  return undefined;
}

function functionAround(node) {
  let at = node;
  while (at && !FUNCTIONS.has(at.type)) at = at.parent;
  return at;
}

const isMaker = (fn) => MAKER.test(fn?.id?.name ?? (fn?.parent.type === 'VariableDeclarator' ? fn.parent.id.name : undefined) ?? '');

/** A field lives as long as its object, a module's variable for ever, and a variable or result of a maker as long as what it makes. */
function outlives(place) {
  switch (place.type) {
    case 'PropertyDefinition':
      return true;
    case 'VariableDeclarator': {
      const block = place.parent.parent.type === 'ExportNamedDeclaration' ? place.parent.parent.parent : place.parent.parent;
      return block.type === 'Program' || (block.type === 'BlockStatement' && isMaker(block.parent));
    }
    default:
      return isMaker(functionAround(place));
  }
}

function isConstant(place) {
  const { name, typeAnnotation } = place.type === 'PropertyDefinition' ? { name: place.key.name, typeAnnotation: place.typeAnnotation } : (place.id ?? {});
  return CONSTANT.test(name ?? '') || UNCHANGING.has(typeAnnotation?.typeAnnotation.typeName?.name);
}

export const keptCollections = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { unsaid: 'A {{kind}} that stays. What is in work belongs into LiveMap or LiveList (ADR 63); one that does not get an entry a request, or never loses it, says so beside it: `// kept: why`.' },
  },
  create(context) {
    const { sourceCode } = context;
    const standsAlone = ({ loc }) => sourceCode.lines[loc.start.line - 1].slice(0, loc.start.column).trim() === '';
    /** True if the comment is on the same lines, or ends on the line above. */
    const isBeside = (comment, made) => (comment.loc.end.line === made.start.line - 1 ? standsAlone(comment) : comment.loc.end.line >= made.start.line && comment.loc.start.line <= made.end.line);
    const hasReason = (made) => sourceCode.getAllComments().some((comment) => isBeside(comment, made.loc) && REASON.test(comment.value));
    return {
      'NewExpression[callee.name=/^(?:Map|Set)$/]': (made) => {
        const place = placeOf(made);
        if (place === undefined || !outlives(place) || isConstant(place) || hasReason(made)) return;
        context.report({ node: made, messageId: 'unsaid', data: { kind: made.callee.name } });
      },
    };
  },
};
