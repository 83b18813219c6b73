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

}  // namespace

std::vector<Token> lex(std::string_view text) {
  ByteStream stream(text);
  NeslLexer lexer(&stream);
  lexer.removeErrorListeners();
  std::vector<Token> tokens;
  for (;;) {
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
