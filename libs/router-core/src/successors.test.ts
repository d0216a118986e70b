import { expect, test } from '@jest/globals';
import { decide } from './decide.js';
import { catalogOf, endpointWith } from './random-catalog.js';
import { plainRequest, type RouteRequest } from './request.js';

const request = (changes: Partial<RouteRequest>): RouteRequest => ({ ...plainRequest('maker/one'), ...changes });

test('a retired model points to those of its maker that are served, and gives way to another that the client lists', () => {
  const catalog = catalogOf([
    { id: 'maker/one', isRetired: true, endpoints: [endpointWith({ id: 'a', provider: 'alpha', model: 'maker/one' })] },
    { id: 'maker/two', endpoints: [endpointWith({ id: 'b', provider: 'alpha', model: 'maker/two' })] },
  ]);
  expect(decide(request({}), { catalog, live: new Map() }, 1)).toEqual({ kind: 'model-deprecated', fallbackModels: ['maker/two'] });
  expect(decide(request({ models: ['two'] }), { catalog, live: new Map() }, 1)).toMatchObject({ kind: 'plan', attempts: [{ endpoint: { id: 'b' } }] });
});

test.each<[string, Partial<RouteRequest>, object]>([
  ['as the deny list leaves', { denyModels: ['maker/two'] }, { kind: 'model-deprecated', fallbackModels: ['maker/three', 'maker/own'] }],
  ['as the allow list has', { allowModels: ['maker/one', 'maker/three'] }, { kind: 'model-deprecated', fallbackModels: ['maker/three'] }],
  ['as a provider serves that the policy leaves', { denyProviders: ['alpha'] }, { kind: 'model-deprecated', fallbackModels: ['maker/own'] }],
  ['only where it may be asked for itself', { denyModels: ['maker/one'] }, { kind: 'model-not-found' }],
])('it points to such %s', (_what, over, refusal) => {
  const catalog = catalogOf([
    { id: 'maker/one', isRetired: true, endpoints: [endpointWith({ id: 'a', provider: 'alpha', model: 'maker/one' })] },
    { id: 'maker/two', endpoints: [endpointWith({ id: 'b', provider: 'alpha', model: 'maker/two' })] },
    { id: 'maker/three', endpoints: [endpointWith({ id: 'c', provider: 'alpha', model: 'maker/three' })] },
    { id: 'maker/own', endpoints: [endpointWith({ id: 'd', provider: 'beta', model: 'maker/own', hasManagedCredential: false })] },
  ]);
  expect(decide(request({ byokProviders: ['beta'], ...over }), { catalog, live: new Map() }, 1)).toEqual(refusal);
});
