// λcu text, as ir/lcu_print.cpp writes it. Scalar types, operations in the form max(a, b) and conversions in the
// form int32(a) are ordinary names here; fusion/lcu_reader.cpp knows them.
grammar Lcu;

program : site* global* function* entry? EOF ;

site : 'site' SITE '=' STRING span? ;
global : 'global' INTEGER ':' coreTypes '=' binders ;
function : 'function' name '(' binders? ')' block ;
entry : 'entry' word ':' coreTypes block ;

coreTypes : '(' (coreType (',' coreType)*)? ')' ;
coreType : name | '[' (coreType (',' coreType)*)? ']' ;

binders : binder (',' binder)* ;
binder : name ':' type ;
type
    : name                        # hostType
    | '&' name                    # cellType
    | '[' name (';' value)? ']'   # arrayType
    ;

// ---- host level ----------------------------------------------------------------------------------------------

block : '{' statement* result? '}' ;
result : ('return' | 'yield') name (',' name)* ;

statement
    : 'kernel' word '{' binding* result? '}' line?  # kernel
    | 'let' binders '=' values line?                # hostLet
    | ('let' binders '=')? operation line?          # hostStatement
    ;

operation
    : 'call' name '(' names? ')'                                          # call
    | 'if' value block 'else' block                                       # hostIf
    | 'loop' '(' (loopParam (',' loopParam)*)? ')' 'while' block 'do' block  # hostLoop
    | 'constant' (column (',' column)*)?                                  # constant
    | 'join' names                                                        # join
    | (order='grade' | sorted='sort' | ranks='ranks')+ name 'over' space  # grade
    | 'service' word '(' names? ')' ':' coreTypes '->' coreTypes SITE     # service
    ;
loopParam : binder '=' name ;
column : STRING | '[' (literal (',' literal)*)? ']' ;
names : name (',' name)* ;

line : '@line' STRING? span? ;
span : INTEGER ':' INTEGER '..' INTEGER ;

// ---- kernels -------------------------------------------------------------------------------------------------

binding : ('let' binders '=')? soac line? ;

soac
    : 'MAP' space thunk effects?                                                               # map
    | 'PERMUTE' space thunk 'to' thunk ('where' thunk)? 'target' value ('fill' literals | 'onto' names)?
      (unique='unique' | agreeing='agreeing')? effects?                                                          # permute
    | 'REDUCE' space thunk literals thunk effects?                                             # reduce
    | 'SCAN' inclusive='inclusive'? backward='backward'? total='total'? space thunk literals thunk effects?  # scan
    | 'FILTER' space thunk 'where' thunk effects?                                              # filter
    | 'PARTITION' space thunk 'where' thunk effects?                                           # partition
    | 'ONCE' thunk effects?                                                                    # once
    ;
space
    : 'flat' value                                    # flat
    | 'seg' '(' name ',' value ',' value ')'          # offsets
    | 'regular' '(' value ',' value ',' value ')'     # regular
    ;
effects : 'effects' thunk ;
literals : '(' (literal (',' literal)*)? ')' ;
thunk : '{' (names '=>')? values? '}' ;

// ---- expressions ---------------------------------------------------------------------------------------------

values : lets? expression (',' expression)* ;
value : lets? expression ;

lets : 'let' let (';' let)* 'in' ;
let
    : name '=' value                                                     # letValue
    | '(' name (',' name)+ ')' '=' 'if' expression 'then' tuple 'else' tuple  # letIf
    | bound '=' loop                                                     # letLoop
    | bound '=' recursion                                                # letRecursion
    | bound '=' 'call' name '(' (value (',' value)*)? ')'                # letCall
    ;
bound : name | '(' name (',' name)+ ')' ;
tuple : '(' values ')' ;
loop : 'loop' '(' loopStart (',' loopStart)* ')' '{' lets? 'while' expression 'next' expression (',' expression)* '}' ;
loopStart : name '=' value ;
recursion : 'recursion' name '(' (loopStart (',' loopStart)*)? ')' ':' names SITE '{' values '}' ;

expression
    : literal                                                 # constantExpression
    | '(' value ')'                                           # parentheses
    | name                                                    # variable
    | name '[' value ']'                                      # load
    | '#' name                                                # size
    | name '(' value (',' value)* ')'                         # application
    | 'check' '(' value ',' value ',' literal ',' SITE ',' value ',' value ')'  # check
    | expression op=('*' | '/' | '%') expression        # infix
    | expression op=('+' | '-') expression              # infix
    | expression op=('==' | '!=' | '<' | '<=' | '>' | '>=') expression  # infix
    | expression op='and' expression                    # infix
    | expression op='or' expression                     # infix
    | 'if' expression 'then' value 'else' value               # conditional
    ;

literal : '-'? (INTEGER | FLOAT) | CHARACTER | 'true' | 'false' ;
word : name | STRING ;
name : NAME ;

SITE : '@' [0-9]+ ;
INTEGER : [0-9]+ 'i32'? ;
FLOAT : ([0-9]+ '.' [0-9]+ ([eE] [-+]? [0-9]+)? | [0-9]+ [eE] [-+]? [0-9]+ | 'inf' | 'nan' ('(0x' [0-9a-fA-F]+ ')')?) 'f32'? ;
CHARACTER : '\'' (~['\\\r\n] | '\\' .)+? '\'' ;
STRING : '"' (~["\\\r\n] | '\\' .)* '"' ;
NAME : [a-zA-Z_] [a-zA-Z_0-9]* ;
SPACE : [ \t\r\n]+ -> skip ;
COMMENT : '//' ~[\r\n]* -> skip ;
