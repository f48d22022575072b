#include "gan_models/data/image_build.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/mutex.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/image_cache.h"
#include "gan_models/data/image_cache_writer.h"
#include "gan_models/data/image_decoder.h"
#include "gan_models/data/image_folder.h"
#include "gan_models/data/image_resize.h"

namespace gossamer {
namespace {

constexpr int kMaxThreads = 1024;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;
// Refused files that an error names.
constexpr size_t kNamed = 10;
// A few damaged files of a small folder are no large share of a data set.
constexpr size_t kRefusedAlways = 2;
// Part of the hash of a source: another way to make pixels makes another file.
constexpr uint64_t kPixelsVersion = 1;

// The files of both parts under one index: train first, then held out.
class Sources {
 public:
  static absl::StatusOr<Sources> Scan(const ImageBuild& build) {
    GOSSAMER_ASSIGN_OR_RETURN(ImageFolder train, ImageFolder::Scan(build.from));
    Sources sources(std::move(train));
    if (!build.held_out.empty()) {
      GOSSAMER_ASSIGN_OR_RETURN(sources.held_out_,
                                ImageFolder::Scan(build.held_out));
      GOSSAMER_RETURN_IF_ERROR(sources.MatchClasses(build));
    }
    return sources;
  }

  size_t size() const {
    return train_.size() + (held_out_ ? held_out_->size() : 0);
  }
  std::string path(size_t i) const {
    return i < train_.size() ? train_.path(i)
                             : held_out_->path(i - train_.size());
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> all = train_.notes();
    if (held_out_) {
      all.insert(all.end(), held_out_->notes().begin(),
                 held_out_->notes().end());
    }
    return all;
  }

  ImageCacheWriter::Contents Contents(int resolution) const {
    ImageCacheWriter::Contents contents;
    contents.side = resolution;
    contents.class_names.assign(train_.class_names().begin(),
                                train_.class_names().end());
    contents.words.reserve(size());
    for (size_t i = 0; i < train_.size(); ++i) {
      const bool held_out =
          !held_out_ && train_.place_in_class(i) % kHeldOutEvery == 1;
      contents.words.push_back(static_cast<uint32_t>(train_.class_of(i)) |
                               (held_out ? kEntryHeldOut : 0));
    }
    for (size_t i = 0; i + train_.size() < size(); ++i) {
      contents.words.push_back(
          static_cast<uint32_t>(class_of_held_out_[held_out_->class_of(i)]) |
          kEntryHeldOut);
    }
    RngKey hash = RngKey(kPixelsVersion)
                      .Fold(static_cast<uint64_t>(resolution))
                      .Fold(train_.fingerprint());
    if (held_out_) hash = hash.Fold(held_out_->fingerprint());
    contents.source = hash.Bits(0);
    return contents;
  }

 private:
  explicit Sources(ImageFolder train) : train_(std::move(train)) {}

  absl::Status MatchClasses(const ImageBuild& build) {
    const auto known = train_.class_names();
    for (const std::string& name : held_out_->class_names()) {
      const auto at = std::find(known.begin(), known.end(), name);
      if (at == known.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            build.held_out, " has class \"", name, "\", which ", build.from,
            " has not; both have a folder of the same name for each class"));
      }
      class_of_held_out_.push_back(static_cast<size_t>(at - known.begin()));
    }
    return absl::OkStatus();
  }

  ImageFolder train_;
  std::optional<ImageFolder> held_out_;
  std::vector<size_t> class_of_held_out_;  // by its index there
};

// The threads that decode, and what they have found.
class Pool {
 public:
  Pool(const ImageBuild& build, const Sources& sources,
       ImageCacheWriter& writer)
      : build_(build),
        sources_(sources),
        writer_(writer),
        list_path_(build.out + ".refused.txt") {
    counts_.files = sources.size();
    std::remove(list_path_.c_str());
  }

  absl::Status Run(
      const std::function<void(const ImageBuildProgress&)>& progress) {
    std::vector<std::thread> threads;
    for (int t = 0; t < build_.threads; ++t) {
      threads.emplace_back([this] { Work(); });
    }
    {
      MutexLock lock(&mu_);
      while (finished_ < build_.threads) {
        changed_.WaitFor(&mu_, absl::Seconds(1));
        progress(counts_);
      }
    }
    for (std::thread& t : threads) t.join();
    MutexLock lock(&mu_);
    progress(counts_);
    return status_;
  }

  // After Run().
  void Describe(ImageBuildResult& result) {
    MutexLock lock(&mu_);
    result.progress = counts_;
    result.first_refused = first_refused_;
    if (!first_refused_.empty()) result.refused_list = list_path_;
  }
  // Of the pictures of both parts, those that were refused.
  std::vector<size_t> refused() {
    MutexLock lock(&mu_);
    return refused_;
  }

 private:
  void Work() {
    std::vector<uint8_t> image(
        ImageCacheHeader{.side = static_cast<uint32_t>(build_.resolution)}
            .image_bytes());
    while (!stop_.load(std::memory_order_relaxed)) {
      const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= sources_.size()) break;
      const absl::Status status = Make(i, image);
      if (status.ok()) continue;
      // An error of the disk is one for all pictures.
      MutexLock lock(&mu_);
      status_.Update(status);
      stop_ = true;
    }
    MutexLock lock(&mu_);
    ++finished_;
    changed_.SignalAll();
  }

  absl::Status Make(size_t i, std::span<uint8_t> image) {
    GOSSAMER_ASSIGN_OR_RETURN(const bool was_done, writer_.IsDone(i, image));
    if (was_done) {
      MutexLock lock(&mu_);
      ++counts_.done;
      ++counts_.resumed;
      return absl::OkStatus();
    }
    const auto file = ReadPictureFile(sources_.path(i));
    if (!file.ok()) return Refuse(i, file.status());
    const auto decoded =
        DecodeImage(*file, {.min_side = 2 * build_.resolution});
    if (!decoded.ok()) return Refuse(i, decoded.status());
    ResizeCentre(*decoded, build_.resolution, image);
    GOSSAMER_RETURN_IF_ERROR(writer_.Keep(i, image));
    MutexLock lock(&mu_);
    ++counts_.done;
    counts_.bytes_read += file->size();
    return absl::OkStatus();
  }

  absl::Status Refuse(size_t i, const absl::Status& why) {
    writer_.Refuse(i);
    const std::string line =
        absl::StrCat(sources_.path(i), ": ", why.message());
    MutexLock lock(&mu_);
    ++counts_.done;
    ++counts_.refused;
    refused_.push_back(i);
    if (first_refused_.size() < kNamed) first_refused_.push_back(line);
    if (!list_.is_open()) list_.open(list_path_);
    list_ << line << "\n";
    if (!list_.flush()) {
      return absl::InternalError(
          absl::StrCat(list_path_, " cannot be written"));
    }
    const double most = build_.max_refused * static_cast<double>(counts_.files);
    if (counts_.refused <= kRefusedAlways ||
        static_cast<double>(counts_.refused) <= most) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(
        counts_.refused, " of ", counts_.done,
        " files are refused, and of all ", counts_.files, " at most ",
        static_cast<size_t>(most), " may be; all are in ", list_path_,
        ", the first are\n  ", absl::StrJoin(first_refused_, "\n  "),
        "\nmend or remove them, or allow a larger share"));
  }

  const ImageBuild& build_;
  const Sources& sources_;
  ImageCacheWriter& writer_;
  const std::string list_path_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  Mutex mu_;
  CondVar changed_;
  int finished_ ABSL_GUARDED_BY(mu_) = 0;  // threads
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  ImageBuildProgress counts_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> refused_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> first_refused_ ABSL_GUARDED_BY(mu_);
  std::ofstream list_ ABSL_GUARDED_BY(mu_);
};

// Counts the pictures of both parts.  kDataLoss: one of them is empty.
absl::Status CountParts(const ImageBuild& build,
                        const std::vector<uint32_t>& words,
                        const std::vector<size_t>& refused,
                        ImageBuildResult& result) {
  const auto is_held_out = [&](size_t i) {
    return (words[i] & kEntryHeldOut) != 0;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    ++(is_held_out(i) ? result.held_out : result.train);
  }
  for (const size_t i : refused) {
    --(is_held_out(i) ? result.held_out : result.train);
  }
  if (result.train > 0 && result.held_out > 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(build.from, " gives ", result.train,
                   " pictures to train and ", result.held_out,
                   " to compare with; both need one: a class of two has a "
                   "held-out picture, or give a folder of them"));
}

// The result if `out` is there and of the same source.
absl::StatusOr<std::optional<ImageBuildResult>> Existing(
    const ImageBuild& build, uint64_t source) {
  struct stat info = {};
  if (::stat(build.out.c_str(), &info) != 0) {
    return std::optional<ImageBuildResult>();
  }
  const std::string advice = "; remove it, or give another --out";
  const auto cache = ImageCache::Open(build.out);
  if (!cache.ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat(cache.status().message(), advice));
  }
  if (cache->source() != source) {
    return absl::AlreadyExistsError(absl::StrCat(
        build.out, " is there, and made from other pictures or settings",
        advice));
  }
  ImageBuildResult result;
  result.was_there = true;
  result.progress.files = result.progress.done = cache->size();
  result.classes = cache->class_names().size();
  result.file_bytes = static_cast<uint64_t>(info.st_size);
  for (size_t i = 0; i < cache->size(); ++i) {
    if (!cache->has(i)) {
      ++result.progress.refused;
    } else {
      ++(cache->held_out(i) ? result.held_out : result.train);
    }
  }
  return std::optional(std::move(result));
}

absl::Status Check(const ImageBuild& build) {
  GOSSAMER_RETURN_IF_ERROR(
      CheckSide(static_cast<uint64_t>(std::max(build.resolution, 0))));
  if (build.threads < 1 || build.threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        build.threads, " threads; 1 to ", kMaxThreads, " are allowed"));
  }
  if (!(build.max_refused >= 0 && build.max_refused <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a share of ", build.max_refused,
                     " that may be refused; it lies between 0 and 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ReadPictureFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "open");
  const absl::Cleanup close = [fd] { ::close(fd); };
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "stat");
  if (!S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) > kMaxFileBytes) {
    return absl::DataLossError(absl::StrCat("has ", info.st_size,
                                            " bytes; a picture file has at "
                                            "most ",
                                            kMaxFileBytes));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "read");
    if (n == 0) break;  // the file became shorter; the decoder sees it
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

absl::StatusOr<ImageBuildResult> BuildImages(
    const ImageBuild& build,
    const std::function<void(const ImageBuildProgress&)>& progress) {
  GOSSAMER_RETURN_IF_ERROR(Check(build));
  GOSSAMER_ASSIGN_OR_RETURN(const Sources sources, Sources::Scan(build));
  ImageCacheWriter::Contents contents = sources.Contents(build.resolution);
  const uint64_t source = contents.source;
  const std::vector<uint32_t> words = contents.words;
  const size_t classes = contents.class_names.size();
  GOSSAMER_ASSIGN_OR_RETURN(auto existing, Existing(build, source));
  if (existing) return *std::move(existing);
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto writer,
      ImageCacheWriter::Open(build.out, std::move(contents)));
  // Another build may have finished before this one got the lock.
  GOSSAMER_ASSIGN_OR_RETURN(existing, Existing(build, source));
  if (existing) {
    std::remove(writer->partial_path().c_str());
    return *std::move(existing);
  }
  Pool pool(build, sources, *writer);
  absl::Status status = pool.Run(progress);
  ImageBuildResult result;
  if (status.ok()) status = CountParts(build, words, pool.refused(), result);
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), "; what is done is kept in ",
                     writer->partial_path(),
                     ", and the same command goes on with it"));
  }
  GOSSAMER_RETURN_IF_ERROR(writer->Publish());
  pool.Describe(result);
  result.classes = classes;
  result.notes = sources.notes();
  struct stat info = {};
  if (::stat(build.out.c_str(), &info) == 0) {
    result.file_bytes = static_cast<uint64_t>(info.st_size);
  }
  return result;
}

}  // namespace gossamer
