#include "driver/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "driver/interrupt.h"

namespace kelpie::driver {

namespace {

/// Standard input that is no terminal: lines as they come.
class PlainLines final : public LineEditor {
 public:
  ~PlainLines() override { std::free(buffer_); }
  Status read(const std::string&, std::string& line) override {
    const ssize_t length = getline(&buffer_, &capacity_, stdin);
    if (length < 0) return std::ferror(stdin) ? Status::Unreadable : Status::End;
    line.assign(buffer_, static_cast<size_t>(length));
    return Status::Line;
  }
  bool interactive() const override { return false; }

 private:
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

class TerminalLines final : public LineEditor {
 public:
  TerminalLines(std::string historyFile, Completer completer);
  ~TerminalLines() override;
  Status read(const std::string& prompt, std::string& line) override;
  bool interactive() const override { return true; }

 private:
  static TerminalLines& of(EditLine* editor);
  static char* prompt(EditLine* editor) { return of(editor).prompt_.data(); }
  static int character(EditLine* editor, wchar_t* result);
  static unsigned char complete(EditLine* editor, int key);
  unsigned char completeWord();

  EditLine* editor_;
  History* history_;
  HistEvent event_{};
  std::string historyFile_, prompt_;
  Completer completer_;
  bool interrupted_ = false;
};

constexpr int kHistoryLength = 10'000;

TerminalLines::TerminalLines(std::string historyFile, Completer completer)
    : editor_(el_init("kelpie", stdin, stdout, stderr)),
      history_(history_init()),
      historyFile_(std::move(historyFile)),
      completer_(std::move(completer)) {
  el_set(editor_, EL_CLIENTDATA, this);
  el_set(editor_, EL_PROMPT, prompt);
  el_set(editor_, EL_SIGNAL, 0);  // driver/interrupt.h catches the signals
  // The kernel would drop what was typed when Ctrl-C comes, also between a poll that saw it and the read,
  // which would then wait for ever.
  el_set(editor_, EL_SETTY, "-d", "+noflsh", nullptr);
  el_set(editor_, EL_GETCFN, character);
  el_set(editor_, EL_EDITOR, "emacs");
  history(history_, &event_, H_SETSIZE, kHistoryLength);
  history(history_, &event_, H_SETUNIQUE, 1);
  el_set(editor_, EL_HIST, history, history_);
  el_set(editor_, EL_ADDFN, "complete", "Complete the name", complete);
  el_set(editor_, EL_BIND, "^I", "complete", nullptr);
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(editor_, nullptr);  // the user's own ~/.editrc
  if (!historyFile_.empty()) history(history_, &event_, H_LOAD, historyFile_.c_str());
}

TerminalLines::~TerminalLines() {
  if (!historyFile_.empty()) history(history_, &event_, H_SAVE, historyFile_.c_str());
  history_end(history_);
  el_end(editor_);
}

TerminalLines& TerminalLines::of(EditLine* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return *static_cast<TerminalLines*>(self);
}

LineEditor::Status TerminalLines::read(const std::string& prompt, std::string& line) {
  prompt_ = prompt;
  interrupted_ = false;
  int length = 0;
  // Before the prompt: a Ctrl-D that comes while the terminal still waits for whole lines is lost.
  el_set(editor_, EL_PREP_TERM, 1);
  const char* text = el_gets(editor_, &length);
  if (interrupted_) {
    tcflush(STDIN_FILENO, TCIFLUSH);
    el_reset(editor_);
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return Status::Interrupted;
  }
  if (!text || length <= 0) return Status::End;
  line.assign(text);
  if (line.find_first_not_of(" \t\r\n") != std::string::npos)
    history(history_, &event_, H_ENTER, line.c_str());
  return Status::Line;
}

/// The next character, or -1 after Ctrl-C. Changes of the terminal are dealt with on the way.
int TerminalLines::character(EditLine* editor, wchar_t* result) {
  mbstate_t state{};
  for (;;) {
    pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {terminalEvents(), POLLIN, 0}};
    if (poll(sources, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    if (char event; sources[1].revents && ::read(terminalEvents(), &event, 1) == 1) {
      if (event == 'I') {
        of(editor).interrupted_ = true;
        errno = EINTR;
        return -1;
      }
      if (event == 'C') {  // the shell has changed the terminal's mode
        el_set(editor, EL_PREP_TERM, 0);
        el_set(editor, EL_PREP_TERM, 1);
      } else {
        el_resize(editor);
      }
      el_set(editor, EL_REFRESH);
      continue;
    }
    if (!sources[0].revents) continue;
    char byte;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return static_cast<int>(count);
    const size_t used = std::mbrtowc(result, &byte, 1, &state);
    if (used == static_cast<size_t>(-2)) continue;  // the character has more bytes
    if (used == static_cast<size_t>(-1)) {          // no UTF-8: leave it out
      state = {};
      continue;
    }
    return 1;
  }
}

unsigned char TerminalLines::complete(EditLine* editor, int) { return of(editor).completeWord(); }

unsigned char TerminalLines::completeWord() {
  const LineInfo* line = el_line(editor_);
  const std::string_view before(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
  const Completions completions = completer_(before);
  if (completions.words.empty()) return CC_REFRESH_BEEP;
  const std::string_view word = before.substr(completions.wordBegin);
  std::string common = completions.words.front();
  for (const std::string& other : completions.words) {
    const auto end = std::mismatch(common.begin(), common.end(), other.begin(), other.end()).first;
    common.erase(end, common.end());
  }
  if (completions.words.size() == 1 || common.size() > word.size()) {
    el_deletestr(editor_, static_cast<int>(word.size()));
    el_insertstr(editor_, common.c_str());
    return CC_REFRESH;
  }
  constexpr size_t kLineWidth = 80, kMost = 200;
  size_t width = 0;
  for (const std::string& other : completions.words) width = std::max(width, other.size() + 2);
  std::fputc('\n', stdout);
  size_t column = 0;
  for (size_t i = 0; i < std::min(completions.words.size(), kMost); ++i) {
    if (column > 0 && column + width > kLineWidth) {
      std::fputc('\n', stdout);
      column = 0;
    }
    std::printf("%-*s", static_cast<int>(width), completions.words[i].c_str());
    column += width;
  }
  std::fputs(completions.words.size() > kMost ? "...\n" : "\n", stdout);
  return CC_REDISPLAY;
}

}  // namespace

std::unique_ptr<LineEditor> makeLineEditor(std::string historyFile, Completer completer) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return std::make_unique<PlainLines>();
  std::setlocale(LC_CTYPE, "C.UTF-8");
  return std::make_unique<TerminalLines>(std::move(historyFile), std::move(completer));
}

}  // namespace kelpie::driver
