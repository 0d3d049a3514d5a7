/**
 * Makes the shapes of the machine's events and settings from their types, so that each is written
 * once. A shape checks at run time that a value has its type.
 *
 * A number with limits has a type of its own (`Count`, `Share`), which stands for the shape of
 * that name. A type that the script does not understand stops it.
 *
 * From top to bottom: names of files and shapes; texts; types, read from the sources; and
 * `ShapeWriter`.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { isNode, type Node, nameOf, stringOf } from './tidy/source.js';

export const MACHINE_SHAPES = 'packages/agent/src/machine/shapes.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = 'packages/agent/src';
/** The files that declare the types. */
const FILES = [
  ...['policy/decide', 'policy/rules', 'policy/judged-call', 'policy/presets'],
  ...['machine/call', 'machine/event', 'machine/message', 'machine/settings'],
];
const KERNEL = '@pawl/machine/kernel/shape';
/** The types whose shapes other files use. */
const EXPORTED = new Set(
  (
    'AssistantMessage AssistantPart CallFacts CallOutcome CallPreview CallTraits CallVerdict Event ' +
    'JsonObject Limits Message ModelError Prices RequestedLimit Settings StopReason Usage UserEvent'
  ).split(' '),
);
const shapeName = (type: string): string =>
  type === 'UserEvent' ? 'userEventCases' : `${type[0]?.toLowerCase()}${type.slice(1)}Shape`;
const declarationHead = (type: string): string =>
  `${EXPORTED.has(type) ? 'export ' : ''}const ${shapeName(type)}`;

/** Types with a shape of the kernel. */
const KERNEL_SHAPES: Readonly<Record<string, string>> = {
  NonNegative: 'amount',
  Count: 'count',
  CountFromOne: 'countFromOne',
  Share: 'share',
};

/** Shapes that can't be made from a type, and names that they use of the kernel. */
const SPECIAL_SHAPES: Readonly<Record<string, readonly [shape: string, kernel: string[]]>> = {
  JsonObject: ['jsonObject<JsonObject>()', ['jsonObject', 'type JsonObject']],
  TokenCount: ['countTo(1_000_000_000)', ['countTo']],
};

// ---- Text ----

/** The text with its imports sorted and its lines broken as the rest of the sources. */
const format = (text: string): string => {
  const words = ['check', '--write', `--stdin-file-path=${MACHINE_SHAPES}`];
  const biome = path.join(root, 'node_modules/.bin/biome');
  const { stdout, stderr } = spawnSync(biome, words, { cwd: root, input: text, encoding: 'utf8' });
  if (stdout === '') throw new Error(`the shapes can't be formatted:\n${stderr}`);
  return stdout;
};

const importText = (kind: string, names: Iterable<string>, from: string): string =>
  `${kind} { ${[...names].join(', ')} } from '${from}';`;

/** Fields of an object, of which a value may be what its key is. */
const objectText = (fields: readonly (readonly [key: string, value: string])[]): string =>
  `{ ${fields.map(([key, value]) => (key === value ? key : `'${key}': ${value}`)).join(', ')} }`;

// ---- Types ----

type DeclaredType = { readonly type: Node; readonly file: string };
type Field = { readonly name: string; readonly isOptional: boolean; readonly type: Node };

const getChild = (node: Node, field: string): Node => {
  const value = node[field];
  if (!isNode(value)) throw new Error(`a ${node.type} without ${field}`);
  return value;
};
const getChildren = (node: Node, field: string): readonly Node[] => {
  const value = node[field];
  return Array.isArray(value) ? value.filter(isNode) : [];
};

const readTypes = (): ReadonlyMap<string, DeclaredType> => {
  const types = new Map<string, DeclaredType>();
  for (const file of FILES) {
    const name = `${FOLDER}/${file}.ts`;
    const { program } = parseSync(name, readFileSync(path.join(root, name), 'utf8'));
    const tree: unknown = program;
    for (const statement of isNode(tree) ? getChildren(tree, 'body') : []) {
      const declaration = isNode(statement.declaration) ? statement.declaration : statement;
      const declared = nameOf(declaration.id);
      if (declaration.type === 'TSTypeAliasDeclaration' && declared !== undefined)
        types.set(declared, { type: getChild(declaration, 'typeAnnotation'), file });
    }
  }
  return types;
};

const unwrap = (type: Node): Node =>
  type.type === 'TSParenthesizedType' ? unwrap(getChild(type, 'typeAnnotation')) : type;

const referenceName = (type: Node): string | undefined =>
  type.type === 'TSTypeReference' ? nameOf(type.typeName) : undefined;

const getParameters = (type: Node): readonly Node[] =>
  isNode(type.typeArguments) ? getChildren(type.typeArguments, 'params') : [];

const getLiteral = (type: Node): string | undefined =>
  type.type === 'TSLiteralType' ? stringOf(type.literal) : undefined;

/** All of the list, or null if one is null. */
const allKnown = <T>(values: readonly (T | null)[]): readonly T[] | null => {
  const known = values.filter((value) => value !== null);
  return known.length === values.length ? known : null;
};

/** The time that every event has. */
const AT: Field = {
  name: 'at',
  isOptional: false,
  type: { type: 'TSNumberKeyword', start: 0, end: 0 },
};

/** Writes the shapes of `Event` and `Settings`, and of all types that they name. */
class ShapeWriter {
  readonly #types = readTypes();
  readonly #kernel = new Set<string>();
  readonly #imports = new Map<string, Set<string>>();
  /** The text of each shape, by its type; an entry follows those that it needs. */
  readonly #written = new Map<string, string>();

  text(): string {
    for (const name of ['Event', 'Settings']) this.#write(name);
    const imports = [...this.#imports].map(([file, names]) => {
      const from = path.posix.relative('machine', file);
      return importText('import type', names, `${from.startsWith('.') ? from : `./${from}`}.js`);
    });
    const lines = [
      '/**',
      ' * Shapes of events and settings: checks that unknown JSON, such as a line of a journal, has a type.',
      " * Made by scripts/machine-shapes.ts (`npm run update`), so don't edit it: each shape comes from the",
      ' * type of its name. The parts of a shape come first. In `oneOf` the keys are the allowed words.',
      ' */',
      '',
      importText('import', this.#kernel, KERNEL),
      ...imports,
      '',
      ...this.#written.values(),
    ];
    return format(lines.join('\n'));
  }

  /** Writes the shape of a type, after those that it needs. Returns the name of its constant. */
  #write(name: string): string {
    const constant = shapeName(name);
    if (this.#written.has(name)) return constant;
    const head = declarationHead(name);
    const [special, kernel = []] = SPECIAL_SHAPES[name] ?? [];
    if (special !== undefined) {
      for (const one of kernel) this.#kernel.add(one);
      this.#written.set(name, `${head} = ${special};`);
      return constant;
    }
    const declared = this.#types.get(name);
    if (declared === undefined) throw new Error(`no file of the machine's types declares ${name}`);
    const shape = name === 'Event' ? this.#eventShape() : this.#shape(declared.type, name);
    this.#written.set(name, `${head} = ${shape};`);
    return constant;
  }

  /** The events of users are cases of their own: their shapes are used without the time, too. */
  #eventShape(): string {
    const { users, others } = this.#eventMembers();
    const head = declarationHead('UserEvent');
    this.#written.set('UserEvent', `${head} = ${objectText(this.#cases(users, 'type'))};`);
    const cases = [
      ['...userEventCases', '...userEventCases'] as const,
      ...this.#cases(others, 'type'),
    ];
    return this.#call(`variant<${this.#import('Event')}, 'type'>`, "'type'", objectText(cases));
  }

  #eventMembers(): {
    readonly users: readonly (readonly Field[])[];
    readonly others: readonly (readonly Field[])[];
  } {
    // AT.type has no members, so a type that is not declared gives none
    const members = (name: string) => this.#members(this.#types.get(name)?.type ?? AT.type) ?? [];
    const users = members('UserEvent');
    // the members of UserEvent are the first ones of Event
    return { users, others: members('Event').slice(users.length) };
  }

  /** Notes that the file imports a type. Returns its name. */
  #import(name: string): string {
    const file = this.#types.get(name)?.file;
    if (file !== undefined)
      this.#imports.set(file, (this.#imports.get(file) ?? new Set()).add(name));
    return name;
  }

  /** Notes that the file imports a function or shape of the kernel. Returns its name. */
  #use(name: string): string {
    this.#kernel.add(name.replace(/<.*/, ''));
    return name;
  }

  #call(callee: string, ...args: readonly string[]): string {
    return `${this.#use(callee)}(${args.join(', ')})`;
  }

  /** `name`: of the declared type, which the shape is checked against. */
  #shape(given: Node, name: string | null): string {
    const type = unwrap(given);
    switch (type.type) {
      case 'TSStringKeyword':
        return this.#use('text');
      case 'TSBooleanKeyword':
        return this.#use('bool');
      case 'TSNumberKeyword':
        return this.#use('finite');
      case 'TSTypeOperator':
        return this.#call(
          'list',
          this.#shape(getChild(getChild(type, 'typeAnnotation'), 'elementType'), null),
        );
      case 'TSLiteralType':
        return this.#oneOf([getLiteral(type) ?? ''], null);
      case 'TSUnionType':
        return this.#union(type, name);
      case 'TSTypeReference':
        return this.#reference(type);
      default:
        return this.#object(type, name);
    }
  }

  #reference(type: Node): string {
    const name = referenceName(type) ?? '';
    const kernel = KERNEL_SHAPES[name];
    if (kernel !== undefined) return this.#use(kernel);
    if (name !== 'Partial') return this.#write(name);
    const [whole] = getParameters(type);
    const wholeName = (whole && referenceName(whole)) ?? '';
    const fields = this.#call('partly', `${this.#write(wholeName)}.fields`);
    return this.#call(`object<Partial<${this.#import(wholeName)}>>`, fields);
  }

  #union(type: Node, name: string | null): string {
    const parts = getChildren(type, 'types');
    const others = parts.filter((part) => part.type !== 'TSNullKeyword');
    const [first] = others;
    if (others.length < parts.length && others.length === 1 && first !== undefined)
      return this.#call('nullable', this.#shape(first, null));
    const texts = this.#texts(type);
    if (texts !== null) return this.#oneOf(texts, name);
    if (this.#members(type) !== null) return this.#object(type, name);
    const [other] = parts.filter((part) => this.#texts(part) === null);
    const literals = parts.flatMap((part) => this.#texts(part) ?? []);
    if (other === undefined || literals.length !== parts.length - 1)
      throw new Error('an unknown union');
    return this.#call('either', this.#shape(other, null), this.#oneOf(literals, null));
  }

  #oneOf(texts: readonly string[], name: string | null): string {
    const fields = [...new Set(texts)].map((text) => [text, '1'] as const);
    const callee = name === null ? 'oneOf' : `oneOf<${this.#import(name)}>`;
    return this.#call(callee, objectText(fields));
  }

  /** The texts that a type allows; null if it allows anything else. */
  #texts(given: Node): readonly string[] | null {
    const type = unwrap(given);
    const literal = getLiteral(type);
    if (literal !== undefined) return [literal];
    if (type.type === 'TSUnionType')
      return allKnown(getChildren(type, 'types').map((part) => this.#texts(part)))?.flat() ?? null;
    const declared = this.#types.get(referenceName(type) ?? '');
    return declared === undefined ? null : this.#texts(declared.type);
  }

  /** An object, or a union of objects with a discriminant. */
  #object(type: Node, name: string | null): string {
    const members = this.#members(type);
    const [only] = members ?? [];
    if (members === null || only === undefined) throw new Error(`a ${type.type} is not understood`);
    if (members.length === 1) {
      const callee = name === null ? 'object' : `object<${this.#import(name)}>`;
      return this.#call(callee, objectText(only.map((field) => this.#field(field))));
    }
    const tag = only.find(({ name: field }) =>
      members.every((one) => this.#tagValue(one, field) !== undefined),
    );
    if (tag === undefined) throw new Error('a union of objects without a discriminant');
    const callee = name === null ? 'variant' : `variant<${this.#import(name)}, '${tag.name}'>`;
    return this.#call(callee, `'${tag.name}'`, objectText(this.#cases(members, tag.name)));
  }

  #tagValue(fields: readonly Field[], tag: string): string | undefined {
    const field = fields.find(({ name }) => name === tag);
    return field && getLiteral(field.type);
  }

  #cases(
    members: readonly (readonly Field[])[],
    tag: string,
  ): readonly (readonly [value: string, shape: string])[] {
    return members.map((fields) => {
      const others = fields.filter(({ name }) => name !== tag);
      const shape = objectText(others.map((field) => this.#field(field)));
      return [this.#tagValue(fields, tag) ?? '', shape] as const;
    });
  }

  #field({ name, isOptional, type }: Field): readonly [string, string] {
    const shape = this.#shape(type, null);
    return [name, isOptional ? this.#call('optional', shape) : shape];
  }

  /** The members of a union, or the one object; null for a type of anything else. */
  #members(given: Node): readonly (readonly Field[])[] | null {
    const type = unwrap(given);
    switch (type.type) {
      case 'TSTypeLiteral':
        return [getChildren(type, 'members').map(fieldOfMember)];
      case 'TSUnionType':
        return (
          allKnown(getChildren(type, 'types').map((part) => this.#members(part)))?.flat() ?? null
        );
      case 'TSIntersectionType': {
        const parts = allKnown(getChildren(type, 'types').map((part) => this.#members(part)));
        return (
          parts?.reduce((all, part) => all.flatMap((one) => part.map((two) => [...one, ...two]))) ??
          null
        );
      }
      case 'TSTypeReference': {
        if (referenceName(type) === 'Of') return this.#eventFields(getParameters(type));
        const declared = this.#types.get(referenceName(type) ?? '');
        return declared === undefined ? null : this.#members(declared.type);
      }
      default:
        return null;
    }
  }

  /** `Of<'Start', { … }>` */
  #eventFields([tag, body]: readonly Node[]): readonly (readonly Field[])[] {
    if (tag === undefined) throw new Error('an event without a type');
    const own = body === undefined ? [] : (this.#members(body)?.[0] ?? []);
    return [[{ name: 'type', isOptional: false, type: tag }, AT, ...own]];
  }
}

const fieldOfMember = (member: Node): Field => ({
  name: nameOf(member.key) ?? stringOf(member.key) ?? '',
  isOptional: member.optional === true,
  type: getChild(getChild(member, 'typeAnnotation'), 'typeAnnotation'),
});

/** The text of the file. */
export const machineShapesText = (): string => new ShapeWriter().text();
