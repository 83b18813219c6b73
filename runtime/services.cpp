#include "runtime/services.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/matrix_market.h"
#include "runtime/object_text.h"
#include "runtime/output_file.h"
#include "runtime/subprocess.h"

namespace kelpie {

namespace {

using FilePointer = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Null, and `errno`, where it cannot be read. (Folders can be opened, but hold nothing to read.)
FilePointer openForReading(const std::string& path) {
  FilePointer file(std::fopen(path.c_str(), "rb"), &std::fclose);
  std::error_code none;
  if (!file || !std::filesystem::is_directory(path, none)) return file;
  errno = EISDIR;
  return {nullptr, &std::fclose};
}

std::string text(const Column& string) {
  const SharedArray<std::byte>& bytes = string.elements[0].bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Column textColumn(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return sequenceColumn({ScalarType::Char}, {0, static_cast<int64_t>(text.size())},
                        {scalarColumn(ScalarType::Char, std::move(bytes))});
}

Column scalar(const Scalar& value) { return scalarColumn(value.type, std::vector<Scalar>{value}); }
Column flag(bool value) { return scalar(Scalar::ofBool(value)); }
Column character(char value) { return scalar(Scalar::ofChar(static_cast<unsigned char>(value))); }
Column integer(const CoreType& type, int64_t value) { return scalar(Scalar::ofInt(type.scalar(), value)); }

Column sequenceOf(Column elements) {
  const int64_t n = elements.length();
  Row row = {elements.type};
  return sequenceColumn(std::move(row), {0, n}, {std::move(elements)});
}

/// What a stream operation reports: T and the empty string, or F and what went wrong.
void appendStatus(Columns& row, std::string_view problem) {
  row.push_back(flag(problem.empty()));
  row.push_back(textColumn(problem));
}

class HostServices final : public Services {
 public:
  explicit HostServices(ServiceOptions options) : options_(std::move(options)), random_(options_.generator) {
    if (!options_.output) {
      options_.output = [](std::string_view s) {
        std::fwrite(s.data(), 1, s.size(), stdout), std::fflush(stdout);
      };
    }
    if (!options_.messages) {
      options_.messages = [](std::string_view s) { std::fwrite(s.data(), 1, s.size(), stderr); };
    }
  }

  void beginForm() override {
    endForm(true);
    seeded_ = false;
  }

  void endForm(bool succeeded) override {
    for (auto& [number, stream] : streams_) {
      if (succeeded && stream.output.file()) {
        if (const std::string problem = stream.output.commit(); !problem.empty())
          report(stream.name, problem);
      }
    }
    streams_.clear();
    // Processes see their input end here; one that goes on is not waited for.
    std::erase_if(processes_, [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) != 0; });
    nextStream_ = kFirstFileStream;
    timers_.clear();
  }

  std::variant<Columns, RuntimeError> call(std::string_view name, const Columns& arguments,
                                           const Row& resultTypes, Span span) override {
    static const std::unordered_map<std::string_view, Method> methods = {
        {"print", &HostServices::print},
        {"raise", &HostServices::raise},
        {"random_draws", &HostServices::randomDraws},
        {"random_seed", &HostServices::randomSeed},
        {"start_timer", &HostServices::startTimer},
        {"stop_timer", &HostServices::stopTimer},
        {"write_object_to_file", &HostServices::writeObjectToFile},
        {"read_object_from_file", &HostServices::readObjectFromFile},
        {"write_string_to_file", &HostServices::writeStringToFile},
        {"append_string_to_file", &HostServices::appendStringToFile},
        {"read_string_from_file", &HostServices::readStringFromFile},
        {"read_int_seq_from_file", &HostServices::readNumbersFromFile},
        {"read_float_seq_from_file", &HostServices::readNumbersFromFile},
        {"read_matrix_market", &HostServices::readMatrix},
        {"open_in_file", &HostServices::openInFile},
        {"open_out_file", &HostServices::openOutFile},
        {"open_append_file", &HostServices::openAppendFile},
        {"close_file", &HostServices::closeFile},
        {"read_char", &HostServices::readChar},
        {"read_string", &HostServices::readString},
        {"read_object", &HostServices::readObjectFromStream},
        {"write_object", &HostServices::writeObjectToStream},
        {"read_int_seq", &HostServices::readNumbersFromStream},
        {"read_float_seq", &HostServices::readNumbersFromStream},
        {"write_string", &HostServices::writeString},
        {"shell_command", &HostServices::shellCommand},
        {"spawn", &HostServices::spawn},
        {"get_environment_variable", &HostServices::getEnvironmentVariable},
    };
    const auto method = methods.find(name);
    if (method == methods.end()) throw InternalError(fmt::format("unknown service {}", name));
    Reply reply = (this->*method->second)(arguments, resultTypes);
    if (auto* problem = std::get_if<std::string>(&reply)) return RuntimeError{span, std::move(*problem)};
    return std::get<Columns>(std::move(reply));
  }

  RandomStream passOver(uint64_t count) override {
    ensureSeeded();
    const RandomStream stream = random_;
    random_.skip(count);
    return stream;
  }

 private:
  using Reply = std::variant<Columns, std::string>;  ///< the string is a run-time error
  using Method = Reply (HostServices::*)(const Columns&, const Row&);

  struct Stream {
    std::string name;
    FilePointer input{nullptr, &std::fclose};
    OutputFile output;
    FilePointer process{nullptr, &std::fclose};  ///< the input of a process
  };
  static constexpr int64_t kNoStream = 0, kStandardInput = 1, kStandardOutput = 2, kFirstFileStream = 3;

  void report(std::string_view subject, std::string_view problem) {
    options_.messages(fmt::format("{}: {}\n", subject, problem));
  }

  // ---- the terminal, random numbers, clocks ------------------------------------------------------------

  Reply print(const Columns& arguments, const Row&) {
    options_.output(text(arguments[0]));
    return Columns{flag(true)};
  }

  Reply raise(const Columns& arguments, const Row&) {
    std::string message = text(arguments[0]);
    return message.empty() ? "the program calls error" : message;
  }

  Reply randomDraws(const Columns& arguments, const Row&) {
    const int64_t count = arguments[0].at(0).i;
    std::vector<std::byte> bytes;
    try {
      bytes.resize(static_cast<size_t>(count) * sizeof(int64_t));
    } catch (const std::exception&) {  // bad_alloc, or length_error
      return fmt::format("out of memory: {} random numbers need {} bytes each", count, sizeof(int64_t));
    }
    ensureSeeded();
    random_.draw({reinterpret_cast<int64_t*>(bytes.data()), bytes.size() / sizeof(int64_t)});
    return Columns{sequenceOf(scalarColumn(ScalarType::Int64, std::move(bytes)))};
  }

  void ensureSeeded() {
    if (!seeded_) seed(options_.seed);
  }
  void seed(int64_t seed) {
    random_.seed(seed);
    seeded_ = true;
  }
  Reply randomSeed(const Columns& arguments, const Row&) {
    seed(arguments[0].at(0).i);
    return Columns{flag(true)};
  }

  Reply startTimer(const Columns&, const Row& resultTypes) {
    timers_.push_back(Clock::now());
    return Columns{integer(resultTypes[0], static_cast<int64_t>(timers_.size()))};
  }

  Reply stopTimer(const Columns& arguments, const Row& resultTypes) {
    const auto count = static_cast<int64_t>(timers_.size());
    const int64_t asked = arguments[0].at(0).i, number = asked == 0 ? count : asked;
    if (number < 1 || number > count) return "stop_timer: no timer was started";
    const std::chrono::duration<double> elapsed = Clock::now() - timers_[static_cast<size_t>(number - 1)];
    return Columns{scalar(Scalar::ofFloat(resultTypes[0].scalar(), elapsed.count()))};
  }

  // ---- whole files ---------------------------------------------------------------------------------------

  Columns writeFile(std::string_view content, const std::string& path, OutputFile::Mode mode) {
    OutputFile file;
    std::string problem = file.open(path, mode);
    if (problem.empty()) problem = file.write(content);
    if (problem.empty()) problem = file.commit();
    if (!problem.empty()) report(path, problem);
    return {flag(problem.empty())};
  }

  Reply writeObjectToFile(const Columns& arguments, const Row&) {
    const Columns object(arguments.begin(), arguments.end() - 1);
    return writeFile(objectText(object), text(arguments.back()), OutputFile::Mode::Replace);
  }
  Reply writeStringToFile(const Columns& arguments, const Row&) {
    return writeFile(text(arguments[0]), text(arguments[1]), OutputFile::Mode::Replace);
  }
  Reply appendStringToFile(const Columns& arguments, const Row&) {
    return writeFile(text(arguments[0]), text(arguments[1]), OutputFile::Mode::Append);
  }

  Reply readObjectFromFile(const Columns& arguments, const Row& resultTypes) {
    const std::string path = text(arguments.back());
    std::variant<Columns, std::string> object = std::strerror(ENOENT);
    if (FilePointer file = openForReading(path)) {
      object = readObject(file.get(), resultTypes);
    } else {
      object = std::strerror(errno);
    }
    if (auto* columns = std::get_if<Columns>(&object)) return std::move(*columns);
    report(path, std::get<std::string>(object));
    return zeroRow(resultTypes);
  }

  Reply readStringFromFile(const Columns& arguments, const Row&) {
    const std::string path = text(arguments[0]);
    FilePointer file = openForReading(path);
    if (!file) {
      report(path, std::strerror(errno));
      return Columns{textColumn("")};
    }
    std::string content, buffer(65536, '\0');
    for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0;)
      content.append(buffer, 0, n);
    if (std::ferror(file.get())) {
      report(path, std::strerror(errno));
      content.clear();
    }
    return Columns{textColumn(content)};
  }

  Reply readMatrix(const Columns& arguments, const Row& resultTypes) {
    const Row& entry = resultTypes[0].elements()[0].elements();
    const std::string path = text(arguments[0]);
    if (!openForReading(path)) return path + ": " + std::strerror(errno);
    return readMatrixMarket(path, entry[0].scalar(), entry[1].scalar());
  }

  Reply readNumbersFromFile(const Columns& arguments, const Row& resultTypes) {
    const std::string path = text(arguments[0]);
    FilePointer file = openForReading(path);
    if (!file) return path + ": " + std::strerror(errno);
    auto numbers = readNumbers(file.get(), resultTypes[0].elements()[0].scalar());
    if (auto* problem = std::get_if<std::string>(&numbers)) return path + ": " + *problem;
    return Columns{sequenceOf(std::get<Column>(std::move(numbers)))};
  }

  // ---- streams -------------------------------------------------------------------------------------------

  Reply open(const Row& resultTypes, Stream stream, std::string_view problem) {
    int64_t number = kNoStream;
    if (problem.empty()) {
      number = nextStream_++;
      streams_.emplace(number, std::move(stream));
    }
    Columns row = {integer(resultTypes[0], number)};
    appendStatus(row, problem);
    return row;
  }
  Reply openInFile(const Columns& arguments, const Row& resultTypes) {
    Stream stream;
    stream.name = text(arguments[0]);
    stream.input = openForReading(stream.name);
    const std::string problem = stream.input ? "" : std::strerror(errno);
    return open(resultTypes, std::move(stream), problem);
  }
  Reply openForWriting(const Columns& arguments, const Row& resultTypes, OutputFile::Mode mode) {
    Stream stream;
    stream.name = text(arguments[0]);
    const std::string problem = stream.output.open(stream.name, mode);
    return open(resultTypes, std::move(stream), problem);
  }
  Reply openOutFile(const Columns& arguments, const Row& resultTypes) {
    return openForWriting(arguments, resultTypes, OutputFile::Mode::Replace);
  }
  Reply openAppendFile(const Columns& arguments, const Row& resultTypes) {
    return openForWriting(arguments, resultTypes, OutputFile::Mode::Append);
  }

  Reply closeFile(const Columns& arguments, const Row&) {
    const auto stream = streams_.find(arguments[0].at(0).i);
    std::string problem;
    if (stream == streams_.end()) {
      problem = "the stream is not open";
    } else {
      if (stream->second.output.file()) problem = stream->second.output.commit();
      streams_.erase(stream);
    }
    Columns row;
    appendStatus(row, problem);
    return row;
  }

  /// The file behind an input stream, or null.
  std::FILE* input(const Column& stream) {
    const int64_t number = stream.at(0).i;
    if (number == kStandardInput) return options_.input;
    const auto found = streams_.find(number);
    return found == streams_.end() ? nullptr : found->second.input.get();
  }

  Reply readChar(const Columns& arguments, const Row&) {
    std::FILE* file = input(arguments[0]);
    const int c = file ? std::getc(file) : EOF;
    Columns row = {character(c == EOF ? ' ' : static_cast<char>(c))};
    appendStatus(row, !file ? kNotOpen : c == EOF ? kEndOfFile : "");
    return row;
  }

  Reply readString(const Columns& arguments, const Row& resultTypes) {
    const std::string delimiters = text(arguments[0]);
    const int64_t limit = arguments[1].at(0).i;
    std::FILE* file = input(arguments[2]);
    std::string result;
    int64_t ending = -1;
    while (file) {
      if (limit >= 0 && static_cast<int64_t>(result.size()) == limit) {
        ending = -2;
        break;
      }
      const int c = std::getc(file);
      if (c == EOF) break;
      if (delimiters.find(static_cast<char>(c)) != std::string::npos) {
        ending = c;
        break;
      }
      result += static_cast<char>(c);
    }
    Columns row = {textColumn(result), integer(resultTypes[1], ending)};
    appendStatus(row, file ? "" : kNotOpen);
    return row;
  }

  Reply readObjectFromStream(const Columns& arguments, const Row& resultTypes) {
    const Row objectTypes(resultTypes.begin(), resultTypes.end() - 2);
    std::FILE* file = input(arguments.back());
    std::variant<Columns, std::string> object = std::string(kNotOpen);
    if (file) object = readObject(file, objectTypes);
    auto* columns = std::get_if<Columns>(&object);
    Columns row = columns ? std::move(*columns) : zeroRow(objectTypes);
    appendStatus(row, columns ? "" : std::get<std::string>(object));
    return row;
  }

  Reply readNumbersFromStream(const Columns& arguments, const Row& resultTypes) {
    const ScalarType element = resultTypes[0].elements()[0].scalar();
    std::FILE* file = input(arguments[0]);
    std::variant<Column, std::string> numbers = std::string(kNotOpen);
    if (file) numbers = readNumbers(file, element);
    auto* column = std::get_if<Column>(&numbers);
    Columns row = {sequenceOf(column ? std::move(*column) : zeroColumn(element, 0))};
    appendStatus(row, column ? "" : std::get<std::string>(numbers));
    return row;
  }

  static std::string write(Stream& stream, std::string_view content) {
    if (stream.output.file()) return stream.output.write(content);
    if (!stream.process) return kNotOpen;
    const PipeSignalBlocked blocked;
    const bool written =
        std::fwrite(content.data(), 1, content.size(), stream.process.get()) == content.size();
    return written && std::fflush(stream.process.get()) == 0 ? "" : std::strerror(errno);
  }

  Columns writeToStream(std::string_view content, const Column& stream) {
    const int64_t number = stream.at(0).i;
    std::string problem;
    if (number == kStandardOutput) {
      options_.output(content);
    } else {
      const auto found = streams_.find(number);
      problem = found == streams_.end() ? kNotOpen : write(found->second, content);
    }
    Columns row;
    appendStatus(row, problem);
    return row;
  }
  Reply writeObjectToStream(const Columns& arguments, const Row&) {
    const Columns object(arguments.begin(), arguments.end() - 1);
    return writeToStream(objectText(object), arguments.back());
  }
  Reply writeString(const Columns& arguments, const Row&) {
    return writeToStream(text(arguments[0]), arguments[1]);
  }

  // ---- processes -----------------------------------------------------------------------------------------

  Reply shellCommand(const Columns& arguments, const Row&) {
    const std::string command = text(arguments[0]);
    const auto output = runProcess(command, text(arguments[1]));
    if (const auto* error = std::get_if<ProcessError>(&output)) return command + ": " + error->message;
    return Columns{textColumn(std::get<std::string>(output))};
  }

  /// The file that a process gets for a stream of the program, or -1.
  int descriptor(int64_t stream) {
    if (stream == kStandardInput) return ::fileno(options_.input);
    if (stream == kStandardOutput) return STDOUT_FILENO;
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return -1;
    Stream& s = found->second;
    std::FILE* file = s.input ? s.input.get() : s.process ? s.process.get() : s.output.file();
    return ::fileno(file);
  }

  Reply spawn(const Columns& arguments, const Row& resultTypes) {
    std::array<Pipe, 3> pipes;  // one for each stream that is null; the others stay unused
    std::array<int64_t, 3> numbers{};
    std::array<int, 3> files{};
    std::string problem;
    for (size_t k = 0; k < 3; ++k) {
      numbers[k] = arguments[k + 1].at(0).i;
      const bool isNull = numbers[k] == kNoStream;
      files[k] = !isNull ? descriptor(numbers[k]) : k == 0 ? pipes[k].read : pipes[k].write;
      if (files[k] < 0) problem = kNotOpen;
    }
    const std::string command = text(arguments[0]);
    if (problem.empty()) {
      const auto started = startProcess(command, files);
      if (const auto* error = std::get_if<ProcessError>(&started)) {
        problem = error->message;
      } else {
        processes_.push_back(std::get<pid_t>(started));
      }
    }
    for (size_t k = 0; problem.empty() && k < 3; ++k) {
      if (numbers[k] != kNoStream) continue;
      Stream stream;
      stream.name = command;
      FilePointer& file = k == 0 ? stream.process : stream.input;
      file.reset(k == 0 ? ::fdopen(std::exchange(pipes[k].write, -1), "wb")
                        : ::fdopen(std::exchange(pipes[k].read, -1), "rb"));
      numbers[k] = nextStream_++;
      streams_.emplace(numbers[k], std::move(stream));
    }
    Columns row;
    for (size_t k = 0; k < 3; ++k)
      row.push_back(integer(resultTypes[k], problem.empty() ? numbers[k] : kNoStream));
    appendStatus(row, problem);
    return row;
  }

  Reply getEnvironmentVariable(const Columns& arguments, const Row&) {
    const char* value = std::getenv(text(arguments[0]).c_str());
    return Columns{textColumn(value ? value : "")};
  }

  static Columns zeroRow(const Row& types) {
    Columns row;
    for (const CoreType& type : types) row.push_back(zeroColumn(type, 1));
    return row;
  }

  static constexpr const char* kNotOpen = "the stream is not open in this direction";
  static constexpr const char* kEndOfFile = "end of file";
  using Clock = std::chrono::steady_clock;

  ServiceOptions options_;
  RandomStream random_;
  bool seeded_ = false;  ///< in this form; seeding takes longer than most forms
  std::map<int64_t, Stream> streams_;
  int64_t nextStream_ = kFirstFileStream;
  std::vector<pid_t> processes_;
  std::vector<Clock::time_point> timers_;
};

}  // namespace

std::unique_ptr<Services> makeServices(ServiceOptions options) {
  return std::make_unique<HostServices>(std::move(options));
}

}  // namespace kelpie
