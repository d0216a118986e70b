// ESLint rule: a Map or Set that outlives the call which made it says why, in rooms that every request goes through (ADR 86).
// One that gets an entry a request and loses it again is linked from table to discarded table in old space, with all that it
// held (ADR 63): LiveMap and LiveList of libs/kernel are for that.

/** Functions by whose name what they declare or answer lives on. */
const MAKER = /^(?:create|compose|new)[A-Z]/;
const REASON = /\bkept: \S/;
/** What is written so, or has such a type, never changes. */
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
const UNCHANGING = new Set(['ReadonlyMap', 'ReadonlySet']);
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** What a collection is the value of, or part of the value of: a variable, a field of a class, or the answer of a function. */
function placeOf(made) {
  for (let [node, child] = [made.parent, made]; node; [node, child] = [node.parent, node]) {
    if (node.type === 'VariableDeclarator' || node.type === 'PropertyDefinition' || node.type === 'ReturnStatement') return node;
    if (FUNCTIONS.has(node.type)) return node.body === child ? node : undefined;
    // What is given to a call is the callee's to keep.
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

/** A field lives as long as its object, a variable of the module for ever, one of a maker and its answer as long as what that makes. */
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
    /** In its own lines, or in a comment that ends above them. */
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
