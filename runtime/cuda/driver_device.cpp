#include "runtime/cuda/driver_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/cuda/device_grade.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/launch_queue.h"
#include "runtime/cuda/shared_library.h"
#ifdef KELPIE_HAVE_CUB
#include "runtime/cuda/last_writers.h"
#endif

namespace kelpie::runtime::cuda {

namespace {

constexpr int kOutOfMemory = 2, kNotReady = 600;  // CUresult

/// The functions of the driver used here. Handles are pointers, device addresses 64-bit numbers, results
/// ints.
struct Driver {
  SharedLibrary library{{"libcuda.so.1", "libcuda.so"}};
  int (*init)(unsigned) = nullptr;
  int (*getErrorString)(int, const char**) = nullptr;
  int (*deviceGet)(int*, int) = nullptr;
  int (*deviceGetAttribute)(int*, int, int) = nullptr;
  int (*deviceGetName)(char*, int, int) = nullptr;
  int (*deviceTotalMem)(size_t*, int) = nullptr;
  int (*primaryCtxRetain)(void**, int) = nullptr;
  int (*primaryCtxRelease)(int) = nullptr;
  int (*ctxSetCurrent)(void*) = nullptr;
  int (*ctxSetLimit)(int, size_t) = nullptr;
  int (*streamCreate)(void**, unsigned) = nullptr;
  int (*streamSynchronize)(void*) = nullptr;
  int (*streamQuery)(void*) = nullptr;
  int (*streamDestroy)(void*) = nullptr;
  int (*defaultMemPool)(void**, int) = nullptr;
  int (*memPoolSetAttribute)(void*, int, void*) = nullptr;
  int (*memPoolTrimTo)(void*, size_t) = nullptr;
  int (*memGetInfo)(size_t*, size_t*) = nullptr;
  int (*memAllocAsync)(uint64_t*, size_t, void*) = nullptr;
  int (*memFreeAsync)(uint64_t, void*) = nullptr;
  int (*allocateHost)(void**, size_t) = nullptr;
  int (*freeHost)(void*) = nullptr;
  int (*copyToDevice)(uint64_t, const void*, size_t, void*) = nullptr;
  int (*copyToHost)(void*, uint64_t, size_t, void*) = nullptr;
  int (*copyOnDevice)(uint64_t, uint64_t, size_t, void*) = nullptr;
  int (*setBytes)(uint64_t, unsigned char, size_t, void*) = nullptr;
  int (*moduleLoadData)(void**, const void*) = nullptr;
  int (*moduleUnload)(void*) = nullptr;
  int (*moduleGetFunction)(void**, void*, const char*) = nullptr;
  int (*functionGetAttribute)(int*, int, void*) = nullptr;
  int (*functionSetAttribute)(void*, int, int) = nullptr;
  int (*blocksAtOnce)(int*, void*, int, size_t) = nullptr;
  int (*eventCreate)(void**, unsigned) = nullptr;
  int (*eventRecord)(void*, void*) = nullptr;
  int (*eventElapsed)(float*, void*, void*) = nullptr;
  int (*eventDestroy)(void*) = nullptr;
  LaunchFunctions launches;

  Driver() {
    library.get(init, "cuInit");
    library.get(getErrorString, "cuGetErrorString");
    library.get(deviceGet, "cuDeviceGet");
    library.get(deviceGetAttribute, "cuDeviceGetAttribute");
    library.get(deviceGetName, "cuDeviceGetName");
    library.get(deviceTotalMem, "cuDeviceTotalMem_v2");
    library.get(primaryCtxRetain, "cuDevicePrimaryCtxRetain");
    library.get(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    library.get(ctxSetCurrent, "cuCtxSetCurrent");
    library.get(ctxSetLimit, "cuCtxSetLimit");
    library.get(streamCreate, "cuStreamCreate");
    library.get(streamSynchronize, "cuStreamSynchronize");
    library.get(streamQuery, "cuStreamQuery");
    library.get(streamDestroy, "cuStreamDestroy_v2");
    library.get(defaultMemPool, "cuDeviceGetDefaultMemPool");
    library.get(memPoolSetAttribute, "cuMemPoolSetAttribute");
    library.get(memPoolTrimTo, "cuMemPoolTrimTo");
    library.get(memGetInfo, "cuMemGetInfo_v2");
    library.get(memAllocAsync, "cuMemAllocAsync");
    library.get(memFreeAsync, "cuMemFreeAsync");
    library.get(allocateHost, "cuMemAllocHost_v2");
    library.get(freeHost, "cuMemFreeHost");
    library.get(copyToDevice, "cuMemcpyHtoDAsync_v2");
    library.get(copyToHost, "cuMemcpyDtoHAsync_v2");
    library.get(copyOnDevice, "cuMemcpyDtoDAsync_v2");
    library.get(setBytes, "cuMemsetD8Async");
    library.get(moduleLoadData, "cuModuleLoadData");
    library.get(moduleUnload, "cuModuleUnload");
    library.get(moduleGetFunction, "cuModuleGetFunction");
    library.get(functionGetAttribute, "cuFuncGetAttribute");
    library.get(functionSetAttribute, "cuFuncSetAttribute");
    library.get(blocksAtOnce, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    library.get(eventCreate, "cuEventCreate");
    library.get(eventRecord, "cuEventRecord");
    library.get(eventElapsed, "cuEventElapsedTime");
    library.get(eventDestroy, "cuEventDestroy_v2");
    library.get(launches.launchKernel, "cuLaunchKernelEx");
    library.get(launches.beginCapture, "cuStreamBeginCapture_v2");
    library.get(launches.endCapture, "cuStreamEndCapture");
    library.get(launches.instantiate, "cuGraphInstantiateWithFlags");
    library.get(launches.update, "cuGraphExecUpdate_v2");
    library.get(launches.launchGraph, "cuGraphLaunch");
    library.get(launches.destroyGraph, "cuGraphDestroy");
    library.get(launches.destroyExecutable, "cuGraphExecDestroy");
  }

  /// Nothing when `result` is success.
  Failure failure(int result, const char* what) const {
    if (result == 0) return std::nullopt;
    const char* text = nullptr;
    getErrorString(result, &text);
    std::string message = fmt::format("{}: {} (CUDA error {})", what, text ? text : "unknown error", result);
    size_t unused = 0, all = 0;
    if (result == kOutOfMemory && memGetInfo(&unused, &all) == 0)
      message += fmt::format("; {:.1f} of {:.1f} MB are free", static_cast<double>(unused) / 1e6,
                             static_cast<double>(all) / 1e6);
    return message;
  }
};

constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;  // CUdevice_attribute
constexpr int kSharedOfMultiprocessor = 81, kSharedReserved = 111;         // likewise
constexpr int kClock = 13, kMultiprocessors = 16, kCacheBytes = 38;        // likewise; the clock in kHz
constexpr int kMostThreads = 0, kSharedOfBlock = 1, kSharedShare = 9;      // CUfunction_attribute
constexpr int kFrameOfThread = 3, kRegistersOfThread = 4;                  // likewise
constexpr int kReleaseThreshold = 4;                                       // CUmemPool_attribute
constexpr int kStackSize = 0;                                              // CUlimit
constexpr int kLaunchesEarly = 90;                                         // architecture
constexpr size_t kStagingBytes = 4096;
constexpr int kLooksPerQuery = 10000;
constexpr unsigned kNonBlocking = 1;  // CUstream_flags

class DriverModule final : public Module {
 public:
  DriverModule(const Driver& driver, int device, void* module)
      : driver_(driver), device_(device), module_(module) {}
  ~DriverModule() override { driver_.moduleUnload(module_); }
  Function function(const std::string& entry) override {
    void* function = nullptr;
    if (driver_.moduleGetFunction(&function, module_, entry.c_str()) != 0) return nullptr;
    divideMemory(function);
    return function;
  }
  codegen::CompiledPass resources(Function function, int threads) override {
    codegen::CompiledPass pass{0, 0, threads, 0, 0};
    if (driver_.blocksAtOnce(&pass.blocksAtOnce, function, threads, 0) != 0) pass.blocksAtOnce = 0;
    driver_.functionGetAttribute(&pass.registers, kRegistersOfThread, function);
    driver_.functionGetAttribute(&pass.frameBytes, kFrameOfThread, function);
    return pass;
  }

 private:
  /// Asks for as much shared memory as the blocks need that fit a multiprocessor; the rest is cache. (By
  /// default it would suffice for more blocks than there are registers for.) Only a wish: failures are
  /// harmless.
  void divideMemory(void* function) const {
    int threads = 0, ofBlock = 0, blocks = 0, reserved = 0, all = 0;
    const bool known = driver_.functionGetAttribute(&threads, kMostThreads, function) == 0 &&
                       driver_.functionGetAttribute(&ofBlock, kSharedOfBlock, function) == 0 &&
                       driver_.blocksAtOnce(&blocks, function, threads, 0) == 0 &&
                       driver_.deviceGetAttribute(&reserved, kSharedReserved, device_) == 0 &&
                       driver_.deviceGetAttribute(&all, kSharedOfMultiprocessor, device_) == 0;
    if (!known || all == 0) return;
    const int percent = (100 * blocks * (ofBlock + reserved) + all - 1) / all;
    driver_.functionSetAttribute(function, kSharedShare, std::min(percent, 100));
  }

  const Driver& driver_;
  int device_;
  void* module_;
};

/// Compilers that are not waited for: their threads use them until the process ends.
std::vector<std::unique_ptr<KernelCompiler>>& leftBehind() {
  static auto* const kCompilers = new std::vector<std::unique_ptr<KernelCompiler>>();
  return *kCompilers;
}

class DriverDevice final : public Device {
 public:
  ~DriverDevice() override {
    if (compiler_) compiler_->giveUp();
    if (meanwhile_ && compiler_ && compiler_->busy()) leftBehind().push_back(std::move(compiler_));
    if (!context_) return;
    driver_.ctxSetCurrent(context_);
    queue_.reset();
    for (void* event : events_) driver_.eventDestroy(event);
    if (stream_) driver_.streamDestroy(stream_);
    if (staging_) driver_.freeHost(staging_);
    for (void* memory : shared_) driver_.freeHost(memory);
    driver_.primaryCtxRelease(device_);
  }

  Failure open(int ordinal, const std::string& compiledAhead, const std::string& compilerHelper,
               bool meanwhile) {
    meanwhile_ = meanwhile;
    if (!driver_.library.isOpen()) return "there is no CUDA driver on this machine";
    if (!driver_.library.missing().empty()) return "the CUDA driver lacks " + driver_.library.missing();
    if (auto f = driver_.failure(driver_.init(0), "cuInit")) return f;
    if (auto f = driver_.failure(driver_.deviceGet(&device_, ordinal), "cuDeviceGet")) return f;
    int major = 0, minor = 0;
    driver_.deviceGetAttribute(&major, kComputeCapabilityMajor, device_);
    driver_.deviceGetAttribute(&minor, kComputeCapabilityMinor, device_);
    architecture_ = major * 10 + minor;
    if (architecture_ < 80)
      return fmt::format("the GPU has compute capability {}.{}; 8.0 is needed", major, minor);
    std::shared_ptr<CompilerServer> server;
    if (!compilerHelper.empty()) server = std::make_shared<CompilerServer>(compilerHelper);
    compiler_ = std::make_unique<KernelCompiler>(architecture_, compiledAhead, std::move(server), meanwhile);
    if (!compiler_->available() && compiledAhead.empty())
      return "NVRTC (libnvrtc.so) was not found; it belongs to the CUDA toolkit";
    driver_.deviceTotalMem(&memory_, device_);
    if (auto f = driver_.failure(driver_.primaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"))
      return f;
    if (auto f = driver_.failure(driver_.ctxSetCurrent(context_), "cuCtxSetCurrent")) return f;
    if (auto f = driver_.failure(driver_.streamCreate(&stream_, kNonBlocking), "cuStreamCreate")) return f;
    queue_.emplace(driver_.launches, stream_, architecture_ >= kLaunchesEarly);
    if (auto f = driver_.failure(driver_.allocateHost(&staging_, kStagingBytes), "cuMemAllocHost")) return f;
    if (auto f = driver_.failure(driver_.defaultMemPool(&pool_, device_), "cuDeviceGetDefaultMemPool"))
      return f;
    uint64_t keepAll = UINT64_MAX;
    return driver_.failure(driver_.memPoolSetAttribute(pool_, kReleaseThreshold, &keepAll),
                           "cuMemPoolSetAttribute");
  }

  Failure reserveStack(size_t bytes) override {
    if (auto f = flush()) return f;
    return driver_.failure(driver_.ctxSetLimit(kStackSize, bytes), "cuCtxSetLimit");
  }

  DevicePointer allocate(size_t bytes) override {
    uint64_t address = 0;
    size_t rounded = (std::max<size_t>(bytes, 16) + 255) / 256 * 256;
    queue_->flushForNow();  // who asks for memory asks again when there is none
    if (driver_.memAllocAsync(&address, rounded, stream_) != 0) {
      giveBackUnused();
      if (driver_.memAllocAsync(&address, rounded, stream_) != 0) return nullptr;
    }
    return reinterpret_cast<DevicePointer>(address);
  }
  void deallocate(DevicePointer pointer) override {
    queue_->flushForNow();
    driver_.memFreeAsync(at(pointer), stream_);
  }
  size_t memoryLimit() const override { return memory_ / 16 * 15; }
  void giveBackUnused() override {
    queue_->flushForNow();
    driver_.streamSynchronize(stream_);  // a failure of a kernel comes back at the next wait
    queue_->waited();
    driver_.memPoolTrimTo(pool_, 0);
  }
  codegen::DeviceFigures figures() const override {
    const auto attribute = [this](int which) {
      int value = 0;
      return driver_.deviceGetAttribute(&value, which, device_) == 0 ? value : 0;
    };
    char name[256] = "";
    driver_.deviceGetName(name, sizeof name, device_);
    constexpr double kHertz = 1e3;
    return {name,
            architecture_,
            attribute(kMultiprocessors),
            attribute(kClock) * kHertz,
            0,
            static_cast<double>(attribute(kCacheBytes))};
  }

  Failure upload(DevicePointer to, const void* from, size_t bytes) override {
    if (bytes == 0) return std::nullopt;
    if (auto f = flush()) return f;
    // From pageable memory: the source has been read when this returns.
    return driver_.failure(driver_.copyToDevice(at(to), from, bytes, stream_), "copy to the device");
  }
  Failure download(void* to, DevicePointer from, size_t bytes) override {
    if (auto f = flush()) return f;
    if (bytes > 0) {
      if (auto f = driver_.failure(driver_.copyToHost(to, at(from), bytes, stream_), "copy from the device"))
        return f;
    }
    return wait();
  }
  /// By way of memory that the device writes itself, which is what makes these copies asynchronous.
  Failure read(std::span<const HostRead> reads) override {
    if (auto f = flush()) return f;
    size_t place = 0;
    for (const HostRead& r : reads) {
      if (place + r.bytes > kStagingBytes) return Device::read(reads);
      if (auto f = driver_.failure(driver_.copyToHost(staged(place), at(r.from), r.bytes, stream_),
                                   "copy from the device"))
        return f;
      place += aligned(r.bytes);
    }
    if (auto f = wait()) return f;
    place = 0;
    for (const HostRead& r : reads) {
      std::memcpy(r.to, staged(place), r.bytes);
      place += aligned(r.bytes);
    }
    return std::nullopt;
  }
  Failure copy(DevicePointer to, DevicePointer from, size_t bytes) override {
    if (bytes == 0) return std::nullopt;
    if (auto f = flush()) return f;
    return driver_.failure(driver_.copyOnDevice(at(to), at(from), bytes, stream_), "copy on the device");
  }
  Failure clear(DevicePointer to, size_t bytes) override {
    if (auto f = flush()) return f;
    return driver_.failure(driver_.setBytes(at(to), 0, bytes, stream_), "clearing memory");
  }
  void* sharedMemory(size_t bytes) override {
    void* memory = nullptr;
    if (driver_.allocateHost(&memory, bytes) != 0) return nullptr;
    shared_.push_back(memory);
    return memory;
  }
  Failure await(const uint64_t* shared, uint64_t value, uint64_t mask, bool busy) override {
    if (auto f = flush()) return f;
    // Asking the driver is slow; it tells when a kernel has failed.
    const auto written = [&] { return (__atomic_load_n(shared, __ATOMIC_ACQUIRE) & mask) == value; };
    for (int look = 1; !written(); ++look) {
      if (look % kLooksPerQuery != 0) continue;
      const int status = driver_.streamQuery(stream_);
      if (status == kNotReady || written()) continue;
      if (auto f = driver_.failure(status, "running kernels")) return f;
      return "a kernel did not write what the host waits for";
    }
    if (!busy) queue_->waited();
    return std::nullopt;
  }
  Failure wait() override {
    if (auto f = flush()) return f;
    queue_->waited();
    return driver_.failure(driver_.streamSynchronize(stream_), "running kernels");
  }

  void announce(const std::vector<std::string>& sources, bool soon) override {
    compiler_->start(sources, soon);
  }
  bool isReady(const std::string& source) override { return !meanwhile_ || compiler_->isReady(source); }
  void hurry(const std::string& source) override { compiler_->hurry(source); }
  bool canCompile(const std::string& source) override { return compiler_->knows(source); }
  Failure compile(const std::string& source, const std::vector<std::string>&,
                  std::unique_ptr<Module>& module) override {
    std::vector<char> code;
    void* loaded = nullptr;
    if (auto f = flush()) return f;
    if (auto f = compiler_->take(source, code)) return f;
    int result = driver_.moduleLoadData(&loaded, code.data());
    if (result == kOutOfMemory) {
      giveBackUnused();
      result = driver_.moduleLoadData(&loaded, code.data());
    }
    if (result == kOutOfMemory) return driver_.failure(result, "loading a module");
    if (result != 0) {
      if (auto f = compiler_->compileAgain(source, code)) return f;
      if (auto f = driver_.failure(driver_.moduleLoadData(&loaded, code.data()), "loading a module"))
        return f;
    }
    module = std::make_unique<DriverModule>(driver_, device_, loaded);
    return std::nullopt;
  }
  CompilerStatistics compilerStatistics() const override { return compiler_->statistics(); }

  Failure launch(Function function, int64_t blocks, int threads, void** arguments) override {
    if (!function) return "a module lacks one of its kernels";
    if (blocks > INT32_MAX) return fmt::format("a launch of {} blocks is too large for the device", blocks);
    if (auto f = markBegin()) return f;
    return driver_.failure(
        queue_->launch(function, static_cast<unsigned>(blocks), static_cast<unsigned>(threads), arguments),
        "launching a kernel");
  }

  Failure grade(const GradeRequest& request) override {
    if (auto f = flush()) return f;
    return gradeOnDevice(*this, stream_, request, [this] { return markBegin(); });
  }

  size_t lastWritersBytes(const LastWriters& request) override {
    size_t bytes = 0;
    return lastWriters(request, nullptr, bytes) == 0 ? bytes : 0;
  }
  Failure findLastWriters(const LastWriters& request, DevicePointer scratch) override {
    if (auto f = flush()) return f;
    size_t bytes = 0;
    return driver_.failure(lastWriters(request, scratch, bytes), "finding last writers");
  }

  Failure markLaunch() override {
    launchIsMarked_ = true;
    return std::nullopt;
  }
  Failure mark() override {
    if (auto f = markBegin()) return f;
    return markNow();
  }
  Failure takeMarks(std::vector<double>& seconds) override {
    const size_t marks = std::exchange(marks_, 0);
    if (marks == 0) return std::nullopt;
    if (auto f = wait()) return f;
    for (size_t k = 0; k + 1 < marks; k += 2) {
      float milliseconds = 0;
      if (auto f = driver_.failure(driver_.eventElapsed(&milliseconds, events_[k], events_[k + 1]),
                                   "cuEventElapsedTime"))
        return f;
      seconds.push_back(1e-3 * milliseconds);
    }
    return std::nullopt;
  }

 private:
  Failure markBegin() { return std::exchange(launchIsMarked_, false) ? markNow() : std::nullopt; }
  Failure markNow() {
    if (marks_ == events_.size()) {
      void* event = nullptr;
      if (auto f = driver_.failure(driver_.eventCreate(&event, 0), "cuEventCreate")) return f;
      events_.push_back(event);
    }
    if (auto f = flush()) return f;
    queue_->waited();  // launches between marks are timed one by one
    return driver_.failure(driver_.eventRecord(events_[marks_++], stream_), "cuEventRecord");
  }

  /// What was freed, but is kept for later, or lies in pieces, goes back to the system.
  Failure flush() { return driver_.failure(queue_->flush(), "launching kernels"); }
  int lastWriters(const LastWriters& r, DevicePointer scratch, size_t& bytes) {
#ifdef KELPIE_HAVE_CUB
    uint64_t needed = 0;
    const int error = kelpie_last_writers(
        static_cast<const uint32_t*>(r.places), r.elements, static_cast<const int64_t*>(r.counted),
        static_cast<int64_t*>(r.writers), r.target, r.onto, r.fill, r.error, scratch, &needed, stream_);
    bytes = needed;
    return error;
#else
    constexpr int kNotSupported = 801;  // CUresult
    (void)r, (void)scratch, (void)bytes;
    return kNotSupported;
#endif
  }
  static size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }
  std::byte* staged(size_t place) { return static_cast<std::byte*>(staging_) + place; }
  static uint64_t at(DevicePointer pointer) { return reinterpret_cast<uint64_t>(pointer); }

  Driver driver_;
  std::optional<LaunchQueue> queue_;  ///< in front of the stream
  std::unique_ptr<KernelCompiler> compiler_;
  int device_ = 0, architecture_ = 0;
  size_t memory_ = 0;
  std::vector<void*> events_, shared_;
  size_t marks_ = 0;             ///< events that are recorded and not asked for
  bool launchIsMarked_ = false;  ///< the next one
  bool meanwhile_ = false;
  void *context_ = nullptr, *stream_ = nullptr, *staging_ = nullptr, *pool_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> openDriverDevice(int ordinal, const std::string& compiledAhead,
                                         const std::string& compilerHelper, bool meanwhile,
                                         std::string& why) {
  auto device = std::make_unique<DriverDevice>();
  if (auto failure = device->open(ordinal, compiledAhead, compilerHelper, meanwhile)) {
    why = *failure;
    return nullptr;
  }
  return device;
}

bool compilersAreAtWork() {
  return std::any_of(leftBehind().begin(), leftBehind().end(),
                     [](const auto& compiler) { return compiler->busy(); });
}

}  // namespace kelpie::runtime::cuda
