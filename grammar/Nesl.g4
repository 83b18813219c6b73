/** NESL 3.1, the language Kelpie compiles.
 *
 *  A program is   { [ form ] ( ";" | "$" ) }.
 *  Where a form ends depends on open brackets and lets, because ";" also separates bindings. The token scan
 *  (frontend/form_scanner.h) finds the ends, so the rules below see one form at a time and a mistake in one
 *  form does not spread to the next. The scan also marks three kinds of token by context:
 *
 *    LOAD           the word "load" when it begins a form
 *    LONG_SEQUENCE  a listed sequence of many elements, whose elements have been parsed one by one before
 *    (commands)     other forms that begin with a command word never get here: they are taken as words
 *
 *  The rules are written so that one token of look-ahead decides nearly everywhere. A pattern before "=", "in",
 *  "=>" is read as an expression and turned into a pattern afterwards (frontend/ast_builder.h), which also
 *  reports the mistakes that the rules let through on purpose to say something better than "unexpected":
 *  empty argument lists and subscripts with several indices.
 *
 *  Source text is bytes. Those above 0x7f are legal only in strings, comments and after a backquote, where all
 *  are alike; the lexer sees 0x7f for each of them.
 */
grammar Nesl;

tokens { LOAD, LONG_SEQUENCE }

// ---- top-level forms --------------------------------------------------------------------------------------

form
    : functionDefinition EOF
    | datatypeDefinition EOF
    | loadCommand EOF
    | bindingOrExpression EOF
    ;

functionDefinition
    : FUNCTION NAME parameters (':' signature | '->' funType classContext?)? STRING? ('=' expr)?
    ;

parameters
    : NAME
    | '(' parameter (',' parameter)* ')'
    ;

/** The type belongs to Kelpie's second style of signature: function f(xs : [int]) -> [int] = ... */
parameter : primaryPattern (':' funType)? (':=' e)? ;

datatypeDefinition : DATATYPE NAME type classContext? ;

loadCommand : LOAD expr ;

/** The left side of "=" and "|=" is a pattern. */
bindingOrExpression : expr (op=('=' | '|=') expr)? ;

/** Several elements of a long sequence, without the brackets. */
elements : e (',' e)* EOF ;

// ---- patterns ---------------------------------------------------------------------------------------------

pattern : primaryPattern (',' primaryPattern)* ;

primaryPattern
    : NAME (NAME | '(' pattern ')')?
    | '(' pattern ')'
    ;

// ---- types ------------------------------------------------------------------------------------------------

/** Must have an outermost "->". */
signature : funType classContext? ;

type : funType (',' funType)* ;

funType : primaryType ('->' funType)? ;

primaryType
    : NAME ('(' type ')')?        # namedType
    | '[' primaryType ']'         # sequenceType
    | '(' type ')'                # bracketedType
    ;

classContext : '::' ('(' classBinding (';' classBinding)* ')' | classBinding (';' classBinding)*) ;

classBinding : NAME IN NAME ;

// ---- expressions ------------------------------------------------------------------------------------------

/** Pairs nest to the right. The tails of "if", "let" and "=>" are as long as possible; those of "if" and "let"
 *  are an expr and so take commas as well. */
expr : e (',' e)* ;

/** From the tightest operators to the loosest. */
e
    : e '(' expr? ')'                                            # call
    | e '[' expr (':' expr)* ']'                                 # subscript
    | e juxtaposed                                               # juxtaposition
    | op=('#' | '@' | '-') e                                     # prefix
    | <assoc=right> e op='->' e                                  # binary
    | e op='<-' e                                                # binary
    | e op='^' e                                                 # binary
    | e op=('*' | '/' | '||') e                                  # binary
    | e op=('+' | '-' | '++') e                                  # binary
    | e op=('==' | '/=' | '<' | '>' | '<=' | '>=') e             # binary
    | e op=(AND | NAND) e                                        # binary
    | e op=(OR | NOR | XOR) e                                    # binary
    | <assoc=right> e '=>' e                                     # lambda
    | <assoc=right> e ':=' e                                     # namedArgument
    | primary                                                    # operand
    ;

/** f x: an operand that cannot be taken for an argument list, a subscript or the right side of a minus. */
juxtaposed
    : op=('#' | '@') (juxtaposed | bracketed)
    | atom
    | applyToEach
    | conditional
    | localBindings
    ;

primary
    : atom
    | bracketed
    | applyToEach
    | conditional
    | localBindings
    ;

atom : INT | FLOAT | CHAR | STRING | NAME | LONG_SEQUENCE ;

bracketed
    : '(' expr? ')'                                              # parentheses
    | '[' (']' primaryType | e (':' expr (':' expr)? | (',' e)*) ']')   # sequence
    ;

/** Without "expr :" the pattern of the first binding is the body: {x in xs | x > 0}. "*" asks for one instance
 *  after the other. */
applyToEach : '{' '*'? expr (':' eachBinding | IN expr)? (';' eachBinding)* ('|' expr)? '}' ;

/** A single name without "in" goes through the sequence of that name. */
eachBinding : pattern (IN expr)? ;

conditional : IF expr THEN expr ELSE expr ;

/** The scan has seen that no two ";" follow each other. */
localBindings : LET letBinding (';' letBinding?)* IN expr ;

letBinding : pattern '=' expr ;

// ---- tokens -----------------------------------------------------------------------------------------------

IF : [iI] [fF] ;
THEN : [tT] [hH] [eE] [nN] ;
ELSE : [eE] [lL] [sS] [eE] ;
LET : [lL] [eE] [tT] ;
IN : [iI] [nN] ;
FUNCTION : [fF] [uU] [nN] [cC] [tT] [iI] [oO] [nN] ;
DATATYPE : [dD] [aA] [tT] [aA] [tT] [yY] [pP] [eE] ;
AND : [aA] [nN] [dD] ;
OR : [oO] [rR] ;
XOR : [xX] [oO] [rR] ;
NAND : [nN] [aA] [nN] [dD] ;
NOR : [nN] [oO] [rR] ;

NAME : [A-Za-z_] [A-Za-z_0-9]* ;

INT : [0-9]+ ;
FLOAT : [0-9]+ '.' [0-9]* EXPONENT? | '.' [0-9]+ EXPONENT? | [0-9]+ EXPONENT ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
/** A name cannot follow a number directly. */
BAD_NUMBER : (INT | FLOAT) NAME ;

CHAR : '`' . ;
OPEN_CHAR : '`' ;
STRING : '"' (~["\\] | '\\' .)* '"' ;
OPEN_STRING : '"' (~["\\] | '\\' .)* '\\'? ;

COMMENT : '%' ~[%]* '%' -> skip ;
OPEN_COMMENT : '%' ~[%]* ;
SPACE : [ \t\r\n\f]+ -> skip ;

LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
SEMICOLON : ';' ;
DOLLAR : '$' ;
COLON : ':' ;
COLON_COLON : '::' ;
COLON_EQUAL : ':=' ;
EQUAL : '=' ;
BAR_EQUAL : '|=' ;
BAR : '|' ;
ARROW : '->' ;
LEFT_ARROW : '<-' ;
FAT_ARROW : '=>' ;
HASH : '#' ;
AT : '@' ;
CARET : '^' ;
STAR : '*' ;
SLASH : '/' ;
BAR_BAR : '||' ;
PLUS : '+' ;
MINUS : '-' ;
PLUS_PLUS : '++' ;
EQUAL_EQUAL : '==' ;
SLASH_EQUAL : '/=' ;
LESS : '<' ;
GREATER : '>' ;
LESS_EQUAL : '<=' ;
GREATER_EQUAL : '>=' ;

// Tokens of NESL that no form of a file uses, known so that they can be named in a message.
AMPERSAND_EQUAL : '&=' ;
AMPERSAND : '&' ;
GREATER_GREATER : '>>' ;
QUESTION : '?' ;
EXCLAMATION : '!' ;
QUOTE : '\'' ;

ILLEGAL : . ;
