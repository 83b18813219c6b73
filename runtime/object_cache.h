// Compiles C++ sources into shared objects with the system's compiler and keeps them on disk.
//
// The key of an object is the hash of its source, the compiler (path, size, time of change), its flags and
// the kind of processor, so an object is never used where it does not belong. New objects appear under their
// names by an atomic rename: any number of processes may share the cache. Nothing is ever removed from it but
// objects that are not whole (runtime/sealed_file.h): deleting the folder at any time is safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kelpie::runtime {

struct ObjectCacheOptions {
  std::string directory;  ///< empty: where objectFolder() finds one
  std::string compiler;   ///< empty: $KELPIE_CXX, or the first of g++, c++, clang++ on the path
  bool quick = false;     ///< compilers take half the time, and their code up to six times as long
};

class ObjectCache {
 public:
  explicit ObjectCache(ObjectCacheOptions options);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  /// Names the object of a source. Reads all of it: who asks often keeps the key.
  std::string keyOf(const std::string& source);
  /// The handle of a loaded shared object (for dlsym), from this process or the disk. Null: not there, or
  /// of no use, in which case it is removed.
  void* find(const std::string& key);
  /// Begins to compile the sources in the background, as many at a time as there are cores. A compiler that
  /// is still at work when the process ends finishes alone, for the next time. Gives what went wrong at once,
  /// if anything: no folder, no compiler, no space, no process. Nothing is left of what is not compiled then.
  std::optional<std::string> start(const std::vector<std::string>& sources);
  /// Whether compilers begun by `start` are still at work.
  bool busy();
  /// Waits until they are done.
  void wait();
  /// Why there is no object of a source whose compiler is done.
  std::string failureOf(const std::string& source);

 private:
  /// A compiler's work on one source. Its files are those of `stem` with endings.
  struct Job {
    std::string target, stem;
  };
  std::string pathOf(const std::string& key) const { return directory_ + "/" + key + ".so"; }
  bool locate();                      ///< finds compiler and directory, once
  std::string shellFunction() const;  ///< that does a job
  void forget(const Job& job);        ///< before a shell works on it

  ObjectCacheOptions options_;
  bool located_ = false;
  std::string noFolder_;                            ///< why directory_ is empty
  std::string directory_, compiler_, environment_;  ///< environment_: what a key depends on beside the source
  std::map<std::string, void*> loaded_;             ///< by path
  std::map<std::string, std::string> notLoaded_;    ///< why, by path
  std::vector<int> workers_;                        ///< processes of compilers at work
  std::set<std::string> begun_;                     ///< paths of the objects that these compilers make
};

}  // namespace kelpie::runtime
