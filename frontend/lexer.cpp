#include "frontend/lexer.h"

#include <NeslLexer.h>
#include <NeslParser.h>

#include "ir/diagnostic.h"

namespace kelpie {

using nesl_grammar::NeslLexer;
using nesl_grammar::NeslParser;

namespace {

/// The source bytes as the lexer sees them. Bytes above 0x7f are shown as 0x7f: the grammar treats them
/// alike, and ANTLR remembers its decisions for characters up to 0x7f only.
class ByteStream final : public antlr4::CharStream {
 public:
  explicit ByteStream(std::string_view text) : text_(text) {}

  void consume() override { ++at_; }
  size_t LA(ssize_t distance) override {
    if (distance == 0) return 0;
    const size_t index = at_ + static_cast<size_t>(distance > 0 ? distance - 1 : distance);
    if (index >= text_.size()) return antlr4::IntStream::EOF;
    const auto byte = static_cast<unsigned char>(text_[index]);
    return byte < 0x80 ? byte : 0x7f;
  }
  ssize_t mark() override { return -1; }
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override { at_ = index; }
  size_t size() override { return text_.size(); }
  std::string getSourceName() const override { return {}; }
  std::string getText(const antlr4::misc::Interval&) override { return {}; }
  std::string toString() const override { return {}; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

/// The end of a number that stands at text[begin] and is followed by nothing that could belong to it; else
/// `begin`.
size_t endOfPlainNumber(std::string_view text, size_t begin, uint32_t& type) {
  size_t end = begin;
  while (end < text.size() && isDigit(text[end])) ++end;
  type = NeslParser::INT;
  if (end > begin && end < text.size() && text[end] == '.') {
    type = NeslParser::FLOAT;
    do ++end;
    while (end < text.size() && isDigit(text[end]));
  }
  if (end == text.size()) return begin;
  const char next = text[end];
  const bool separates = isSpace(next) || next == ',' || next == ')' || next == ']' || next == ';';
  return separates ? end : begin;
}

/// Numbers and the signs between them without the generated lexer, which takes ten times as long: data are
/// written with nothing else. Adds the tokens at the beginning of text[at ...] that it knows and moves behind
/// them.
void lexData(std::string_view text, size_t& at, std::vector<Token>& tokens) {
  for (;;) {
    while (at < text.size() && isSpace(text[at])) ++at;
    if (at == text.size()) return;
    uint32_t type = 0;
    size_t end = at + 1;
    switch (text[at]) {
      case ',':
        type = NeslParser::COMMA;
        break;
      case '(':
        type = NeslParser::LPAREN;
        break;
      case ')':
        type = NeslParser::RPAREN;
        break;
      case '[':
        type = NeslParser::LBRACKET;
        break;
      case ']':
        type = NeslParser::RBRACKET;
        break;
      default:
        end = endOfPlainNumber(text, at, type);
        if (end == at) return;
    }
    tokens.push_back({type, static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
    at = end;
  }
}

}  // namespace

std::vector<Token> lex(std::string_view text) {
  ByteStream stream(text);
  NeslLexer lexer(&stream);
  lexer.removeErrorListeners();
  std::vector<Token> tokens;
  for (;;) {
    size_t at = stream.index();
    lexData(text, at, tokens);
    stream.seek(at);
    const std::unique_ptr<antlr4::Token> token = lexer.nextToken();
    if (token->getType() == antlr4::Token::EOF) break;
    tokens.push_back({static_cast<uint32_t>(token->getType()), static_cast<uint32_t>(token->getStartIndex()),
                      static_cast<uint32_t>(token->getStopIndex() + 1)});
  }
  const auto end = static_cast<uint32_t>(text.size());
  tokens.push_back({kEndOfFile, end, end});
  return tokens;
}

std::string_view describeTokenType(uint32_t type) {
  switch (type) {
    case kEndOfFile:
      return "the end of the file";
    case NeslParser::IF:
      return "`if`";
    case NeslParser::THEN:
      return "`then`";
    case NeslParser::ELSE:
      return "`else`";
    case NeslParser::LET:
      return "`let`";
    case NeslParser::IN:
      return "`in`";
    case NeslParser::FUNCTION:
      return "`function`";
    case NeslParser::DATATYPE:
      return "`datatype`";
    case NeslParser::AND:
      return "`and`";
    case NeslParser::OR:
      return "`or`";
    case NeslParser::XOR:
      return "`xor`";
    case NeslParser::NAND:
      return "`nand`";
    case NeslParser::NOR:
      return "`nor`";
    case NeslParser::NAME:
      return "a name";
    case NeslParser::INT:
    case NeslParser::FLOAT:
      return "a number";
    case NeslParser::CHAR:
      return "a character";
    case NeslParser::STRING:
      return "a string";
    case NeslParser::LONG_SEQUENCE:
      return "a sequence";
    case NeslParser::LPAREN:
      return "`(`";
    case NeslParser::RPAREN:
      return "`)`";
    case NeslParser::LBRACKET:
      return "`[`";
    case NeslParser::RBRACKET:
      return "`]`";
    case NeslParser::LBRACE:
      return "`{`";
    case NeslParser::RBRACE:
      return "`}`";
    case NeslParser::COMMA:
      return "`,`";
    case NeslParser::SEMICOLON:
      return "`;`";
    case NeslParser::DOLLAR:
      return "`$`";
    case NeslParser::COLON:
      return "`:`";
    case NeslParser::COLON_COLON:
      return "`::`";
    case NeslParser::COLON_EQUAL:
      return "`:=`";
    case NeslParser::EQUAL:
      return "`=`";
    case NeslParser::BAR_EQUAL:
      return "`|=`";
    case NeslParser::BAR:
      return "`|`";
    case NeslParser::ARROW:
      return "`->`";
    case NeslParser::FAT_ARROW:
      return "`=>`";
    default:
      return "an operator";
  }
}

}  // namespace kelpie
