#include "tests/codegen/emulated_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "codegen/cuda/device_library.h"
#include "runtime/host_grade.h"

namespace emulation {

// As in emulation.h, which is for generated code only: it redefines words of CUDA.
struct dim3_of_emulation {
  unsigned x, y, z;
};
struct Thread {
  dim3_of_emulation threadIdx, blockIdx, blockDim, gridDim;
};
class Machine {
 public:
  virtual ~Machine() = default;
  virtual const Thread& thread() = 0;
  virtual void* sharedMemory(unsigned long bytes) = 0;
  virtual void syncThreads() = 0;
  virtual bool syncThreadsAnd(bool vote) = 0;
  virtual const uint32_t* gather(uint32_t value) = 0;
  virtual void pause() = 0;
};

}  // namespace emulation

namespace kelpie::tests {

using boost::context::fiber;
using runtime::DevicePointer;
using runtime::Failure;

namespace {

constexpr size_t kFence = 256;
constexpr unsigned char kFenceByte = 0xfe, kPoison = 0xcd;
/// Blocks that run at the same time.
constexpr int64_t kInFlight = 3;
/// Switches between fibers without the end of a block after which a launch counts as hung.
constexpr uint64_t kPatience = 50'000'000;

using Entry = void (*)(void**);

struct Compiled final : runtime::cuda::Module {
  void* library = nullptr;
  void** machine = nullptr;
  struct Handle {
    Entry entry;
    void** machine;
  };
  std::map<std::string, Handle> handles;
  ~Compiled() override {
    if (library) dlclose(library);
  }
  runtime::cuda::Function function(const std::string& entry) override {
    auto it = handles.find(entry);
    return it == handles.end() ? nullptr : &it->second;
  }
};

/// Runs one launch.
class Scheduler final : public emulation::Machine {
 public:
  Scheduler(Entry entry, void** arguments, int64_t blocks, int threads, std::mt19937_64& random)
      : entry_(entry), arguments_(arguments), blocks_(blocks), threads_(threads), random_(random) {}

  Failure run() {
    int64_t next = 0;
    while (next < blocks_ || !running_.empty()) {
      while (next < blocks_ && static_cast<int64_t>(running_.size()) < kInFlight) startBlock(next++);
      if (ready_.empty()) return "threads wait for each other at different barriers";
      size_t pick = random_() % ready_.size();
      Fiber* f = ready_[pick];
      ready_[pick] = ready_.back();
      ready_.pop_back();
      current_ = f;
      f->context = std::move(f->context).resume();
      if (!f->context) {
        finishThread(f);
      } else if (!f->waiting) {
        ready_.push_back(f);
      }
      if (++switches_ > kPatience) return "the launch does not end";
    }
    return std::nullopt;
  }

  const emulation::Thread& thread() override { return current_->thread; }
  void* sharedMemory(unsigned long bytes) override {
    Block& b = *current_->block;
    if (b.shared.empty()) b.shared.assign((bytes + 15) / 16 * 16, kPoison);
    return b.shared.data();
  }
  void syncThreads() override {
    Block& b = *current_->block;
    Fiber* self = current_;
    ++b.atBarrier;
    self->atBarrier = true;
    if (!releaseBarrier(b)) {
      self->waiting = true;
      yield(self);
    }
  }
  bool syncThreadsAnd(bool vote) override {
    Block& b = *current_->block;
    b.against |= !vote;
    syncThreads();
    const bool result = !b.against;
    syncThreads();  // all have seen it
    b.against = false;
    syncThreads();  // nobody votes again before
    return result;
  }
  const uint32_t* gather(uint32_t value) override {
    Fiber* self = current_;
    Warp& w = *self->warp;
    const int phase = w.phase;
    w.values[phase][self->thread.threadIdx.x & 31] = value;
    if (++w.arrived == w.size) {
      w.arrived = 0;
      w.phase = (w.phase + 1) % 3;
      for (Fiber* other : w.waiting) {
        other->waiting = false;
        ready_.push_back(other);
      }
      w.waiting.clear();
    } else {
      w.waiting.push_back(self);
      self->waiting = true;
      yield(self);
    }
    return w.values[phase];
  }
  void pause() override { yield(current_); }

 private:
  struct Fiber;
  struct Warp {
    uint32_t values[3][32] = {};  // three phases: a lane may still read one while others fill the next
    int phase = 0, arrived = 0, size = 0;
    std::vector<Fiber*> waiting;
  };
  struct Block {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Warp> warps;
    std::vector<unsigned char, std::allocator<unsigned char>> shared;
    int atBarrier = 0, alive = 0;
    bool against = false;  ///< a thread votes no
  };
  struct Fiber {
    fiber context;
    emulation::Thread thread;
    Block* block = nullptr;
    Warp* warp = nullptr;
    fiber* back = nullptr;
    bool waiting = false, atBarrier = false;
  };

  void yield(Fiber* self) {
    *self->back = std::move(*self->back).resume();
    current_ = self;
  }

  void startBlock(int64_t number) {
    auto block = std::make_unique<Block>();
    block->alive = threads_;
    block->warps.resize(static_cast<size_t>((threads_ + 31) / 32));
    for (int t = 0; t < threads_; ++t) {
      auto f = std::make_unique<Fiber>();
      auto u = [](int64_t v) { return static_cast<unsigned>(v); };
      f->thread = {{u(t), 0, 0}, {u(number), 0, 0}, {u(threads_), 1, 1}, {u(blocks_), 1, 1}};
      f->block = block.get();
      f->warp = &block->warps[static_cast<size_t>(t / 32)];
      ++f->warp->size;
      Fiber* self = f.get();
      f->context = fiber(std::allocator_arg, stacks_, [this, self](fiber&& back) {
        self->back = &back;
        entry_(arguments_);
        return std::move(back);
      });
      ready_.push_back(self);
      block->fibers.push_back(std::move(f));
    }
    running_.push_back(std::move(block));
  }

  bool releaseBarrier(Block& b) {
    if (b.atBarrier < b.alive) return false;
    b.atBarrier = 0;
    for (auto& f : b.fibers) {
      if (!f->atBarrier) continue;
      f->atBarrier = false;
      if (f->waiting) {
        f->waiting = false;
        ready_.push_back(f.get());
      }
    }
    return true;
  }

  void finishThread(Fiber* f) {
    Block* b = f->block;
    --b->alive;
    --f->warp->size;
    if (b->alive > 0) {
      if (b->atBarrier > 0) releaseBarrier(*b);
      return;
    }
    switches_ = 0;
    for (size_t k = 0; k < running_.size(); ++k) {
      if (running_[k].get() != b) continue;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(k));
      return;
    }
  }

  Entry entry_;
  void** arguments_;
  int64_t blocks_;
  int threads_;
  std::mt19937_64& random_;
  boost::context::pooled_fixedsize_stack stacks_{256 * 1024};
  std::vector<std::unique_ptr<Block>> running_;
  std::vector<Fiber*> ready_;
  Fiber* current_ = nullptr;
  uint64_t switches_ = 0;
};

size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 16) + 255) / 256 * 256; }

}  // namespace

EmulatedDevice::EmulatedDevice(uint64_t seed) : random_(seed) {}
EmulatedDevice::~EmulatedDevice() {
  for (const auto& [pointer, bytes] : sizes_) std::free(pointer);
}

DevicePointer EmulatedDevice::allocate(size_t bytes) {
  size_t size = rounded(bytes);
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(256, size + kFence));
  std::memset(memory, kPoison, size);
  std::memset(memory + size, kFenceByte, kFence);
  sizes_[memory] = size;
  return memory;
}
void EmulatedDevice::deallocate(DevicePointer pointer) {
  sizes_.erase(pointer);
  std::free(pointer);
}
Failure EmulatedDevice::checkFences() const {
  for (const auto& [pointer, size] : sizes_) {
    const auto* fence = static_cast<const unsigned char*>(pointer) + size;
    for (size_t k = 0; k < kFence; ++k)
      if (fence[k] != kFenceByte)
        return "a kernel wrote past the end of a buffer of " + std::to_string(size) + " bytes";
  }
  return std::nullopt;
}

Failure EmulatedDevice::upload(DevicePointer to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return std::nullopt;
}
Failure EmulatedDevice::download(void* to, DevicePointer from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return std::nullopt;
}
Failure EmulatedDevice::copy(DevicePointer to, DevicePointer from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return std::nullopt;
}
Failure EmulatedDevice::clear(DevicePointer to, size_t bytes) {
  std::memset(to, 0, bytes);
  return std::nullopt;
}

Failure EmulatedDevice::compile(const std::string& source, const std::vector<std::string>& entries,
                                std::unique_ptr<runtime::cuda::Module>& module) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "kelpie-emulation-XXXXXX").string();
  if (!mkdtemp(pattern.data())) return "cannot make a folder for an emulated module";
  fs::path folder = pattern;
  struct Removal {
    fs::path folder;
    ~Removal() { fs::remove_all(folder); }
  } removal{folder};
  for (const auto& file : codegen::cuda::deviceLibrary()) std::ofstream(folder / file.name) << file.text;
  fs::copy_file(fs::path(KELPIE_SOURCE_DIR) / "tests/codegen/emulation.h", folder / "emulation.h");
  {
    std::ofstream out(folder / "module.cpp");
    out << source;
    for (const std::string& entry : entries)
      out << "extern \"C\" void run_" << entry << "(void** arguments) { emulation::invoke(" << entry
          << ", arguments); }\n";
  }
  std::string command = std::string(KELPIE_HOST_COMPILER) +
                        " -std=c++17 -O1 -w -fwrapv -fPIC -shared -DKELPIE_EMULATION -o '" +
                        (folder / "module.so").string() + "' '" + (folder / "module.cpp").string() +
                        "' 2> '" + (folder / "log").string() + "'";
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(folder / "log");
    return "the emulated module does not compile:\n" +
           std::string(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>())
               .substr(0, 4000) +
           "\n" + source;
  }
  auto compiled = std::make_unique<Compiled>();
  compiled->library = dlopen((folder / "module.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!compiled->library) return std::string("the emulated module does not load: ") + dlerror();
  compiled->machine = static_cast<void**>(dlsym(compiled->library, "kelpie_machine"));
  for (const std::string& entry : entries) {
    auto run = reinterpret_cast<Entry>(dlsym(compiled->library, ("run_" + entry).c_str()));
    compiled->handles[entry] = {run, compiled->machine};
  }
  module = std::move(compiled);
  return std::nullopt;
}

Failure EmulatedDevice::launch(runtime::cuda::Function function, int64_t blocks, int threads,
                               void** arguments) {
  markBegin();
  const auto& handle = *static_cast<Compiled::Handle*>(function);
  Scheduler scheduler(handle.entry, arguments, blocks, threads, random_);
  *handle.machine = static_cast<emulation::Machine*>(&scheduler);
  if (auto failure = scheduler.run()) return failure;
  return checkFences();
}

void* EmulatedDevice::sharedMemory(size_t bytes) {
  return shared_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
}

Failure EmulatedDevice::await(const uint64_t* shared, uint64_t value, uint64_t mask, bool /*busy*/) {
  if ((*shared & mask) != value) return "a kernel did not write what the host waits for";
  return std::nullopt;
}

size_t EmulatedDevice::lastWritersBytes(const runtime::cuda::LastWriters& /*request*/) { return 1; }
Failure EmulatedDevice::findLastWriters(const runtime::cuda::LastWriters& r, runtime::DevicePointer) {
  if (*static_cast<const uint64_t*>(r.error) != 0) return std::nullopt;
  const auto* places = static_cast<const uint32_t*>(r.places);
  auto* writers = static_cast<int64_t*>(r.writers);
  const int64_t n = r.counted ? *static_cast<const int64_t*>(r.counted) : r.elements;
  if (!r.onto) std::fill_n(writers, r.target, r.fill);
  for (int64_t i = 0; i < n; ++i)
    if (places[i] < r.target) writers[places[i]] = std::max(writers[places[i]], i);
  return std::nullopt;
}
Failure EmulatedDevice::grade(const runtime::GradeRequest& request) {
  if (request.failure && *static_cast<const uint64_t*>(request.failure) != 0) return std::nullopt;
  runtime::GradeRequest alone = request;
  alone.scratch = nullptr;
  runtime::ThreadTeam team(1);
  runtime::gradeOnHost(alone, team);
  return std::nullopt;
}

Failure EmulatedDevice::markLaunch() {
  launchIsMarked_ = true;
  return std::nullopt;
}

void EmulatedDevice::markBegin() {
  if (std::exchange(launchIsMarked_, false)) marks_.push_back(std::chrono::steady_clock::now());
}

Failure EmulatedDevice::mark() {
  markBegin();
  marks_.push_back(std::chrono::steady_clock::now());
  return std::nullopt;
}

Failure EmulatedDevice::takeMarks(std::vector<double>& seconds) {
  for (size_t k = 0; k + 1 < marks_.size(); k += 2)
    seconds.push_back(std::chrono::duration<double>(marks_[k + 1] - marks_[k]).count());
  marks_.clear();
  return std::nullopt;
}

}  // namespace kelpie::tests
