#include "runtime/transport/grpc/tls_gate.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/steady_time.h"
#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {
namespace {

// Bytes that one call of the kernel moves.
constexpr size_t kBlock = 128 << 10;
// Bytes that TLS reads ahead, and a socket inside holds each way, if the kernel
// allows as much: the less it holds, the more often the threads wait for each
// other.
constexpr size_t kReadAhead = 64 << 10;
constexpr int kRoomInside = 1 << 20;
// Bytes that one connection may move before the others have their turn.
constexpr size_t kTurn = 1 << 20;
// Connections that are accepted before the open ones have their turn.
constexpr int kAcceptTurn = 64;
// Bytes of the certificates that the other end may show.
constexpr long kMostShown = 16 << 10;
// A renewed certificate is shown within this time.
constexpr absl::Duration kRefresh = absl::Seconds(1);
// The time for the last bytes of all connections when the program ends.
constexpr absl::Duration kLastFlush = absl::Seconds(1);
// The time before connections are accepted again when no descriptor was left.
constexpr absl::Duration kRestTime = absl::Milliseconds(100);

// What an event is of: a connection's number, with a bit for gRPC's side of it,
// or a listener.
constexpr uint64_t kWakes = ~uint64_t{0};
constexpr uint64_t kListens = uint64_t{1} << 63;
constexpr uint64_t kInside = uint64_t{1} << 62;

uint64_t NameOfListener(int socket) {
  return kListens | static_cast<uint64_t>(socket);
}

// Rounded up, for epoll.
int Milliseconds(absl::Duration limit) {
  if (limit == absl::InfiniteDuration()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(
      std::max(limit, absl::ZeroDuration()), absl::Milliseconds(1))));
}

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* p) const {
    kFree(p);
  }
};
using TlsPtr = std::unique_ptr<SSL, Free<SSL_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using BioPtr = std::unique_ptr<BIO, Free<BIO_free>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

BioPtr Reader(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

int SelectHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned int offered_size,
                void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  // gRPC speaks nothing else, and its clients insist on an agreement.
  if (SSL_select_next_proto(&found, size, kHttp2, sizeof kHttp2, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// Null if the files do not belong together.
ContextPtr MakeContext(const std::string& authority,
                       const std::string& certificate, const std::string& key) {
  char no_pass_phrase[] = "";
  const CertificatePtr root(PEM_read_bio_X509(Reader(authority).get(), nullptr,
                                              nullptr, no_pass_phrase));
  const CertificatePtr own(PEM_read_bio_X509(Reader(certificate).get(), nullptr,
                                             nullptr, no_pass_phrase));
  const KeyPtr secret(PEM_read_bio_PrivateKey(Reader(key).get(), nullptr,
                                              nullptr, no_pass_phrase));
  ContextPtr context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const c = context.get();
  const bool good =
      root && own && secret && c != nullptr &&
      SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
      SSL_CTX_use_certificate(c, own.get()) == 1 &&
      SSL_CTX_use_PrivateKey(c, secret.get()) == 1 &&
      SSL_CTX_check_private_key(c) == 1 &&
      X509_STORE_add_cert(SSL_CTX_get_cert_store(c), root.get()) == 1 &&
      // Every connection is authenticated anew.
      SSL_CTX_set_num_tickets(c, 0) == 1;
  ERR_clear_error();
  if (!good) return nullptr;
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(c, SelectHttp2, nullptr);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, kReadAhead);
  SSL_CTX_set_max_cert_list(c, kMostShown);
  return context;
}

}  // namespace

// What connections are made with: a context of OpenSSL, from the files as they
// are.
class TlsGate::Context {
 public:
  explicit Context(std::shared_ptr<CertificateFolder> folder)
      : folder_(std::move(folder)) {}

  BIO* encrypted() { return encrypted_.get(); }
  // Null if the files have never been good.
  SSL_CTX* Get() {
    const absl::Time now = SteadyNow();
    if (now < next_look_) return context_.get();
    next_look_ = now + kRefresh;
    std::array<std::string, 3> files;
    for (size_t i = 0; i < files.size(); ++i) {
      const absl::StatusOr<std::string> text =
          ReadPemFile(i == 0   ? folder_->authority_path()
                      : i == 1 ? folder_->certificate_path()
                               : folder_->key_path());
      if (!text.ok()) return context_.get();
      files[i] = *text;
    }
    if (files == files_) return context_.get();
    // While a renewal has replaced some of the files, the others do not match.
    if (ContextPtr made = MakeContext(files[0], files[1], files[2])) {
      context_ = std::move(made);
      files_ = std::move(files);
    }
    return context_.get();
  }

 private:
  const std::shared_ptr<CertificateFolder> folder_;
  absl::Time next_look_ = absl::InfinitePast();
  std::array<std::string, 3> files_;  // what the context was made of
  ContextPtr context_;
  const BioPtr encrypted_ = BioPtr(BIO_new(BIO_s_mem()));
};

// One connection: TLS outside, and plain bytes for gRPC inside.
class TlsGate::Relay {
 public:
  enum class Step { kWaits, kMore, kOver };

  // `encrypted`, which all relays share, takes what TLS has to send until the
  // socket has got it: a buffer of its own would stay with each connection.
  Relay(FileDescriptor outside, TlsPtr tls, BIO* encrypted)
      : outside_(std::move(outside)),
        tls_(std::move(tls)),
        encrypted_(encrypted) {
    SSL_set0_rbio(tls_.get(), BIO_new_socket(outside_.get(), BIO_NOCLOSE));
    BIO_up_ref(encrypted);
    SSL_set0_wbio(tls_.get(), encrypted);
  }

  int outside() const { return outside_.get(); }
  int inside() const { return inside_.get(); }
  // The time by which it has to be on, or over.
  absl::Time deadline = absl::InfiniteFuture();

  // Goes on with the handshake.  kMore: it is done.
  Step Shake() {
    ERR_clear_error();
    const int result = SSL_accept(tls_.get());
    const bool blocked = result != 1 && Blocked(result);
    // An alert tells the other end what was wrong.
    if (!Flush() || (result != 1 && !blocked)) return Step::kOver;
    return blocked ? Step::kWaits : Step::kMore;
  }

  // The certificate that the handshake has verified; empty: none.
  std::string Certificate() const {
    const CertificatePtr shown(SSL_get1_peer_certificate(tls_.get()));
    const BioPtr out(BIO_new(BIO_s_mem()));
    if (!shown || SSL_get_verify_result(tls_.get()) != X509_V_OK || !out ||
        PEM_write_bio_X509(out.get(), shown.get()) != 1) {
      return "";
    }
    char* text = nullptr;
    const long size = BIO_get_mem_data(out.get(), &text);
    return std::string(text, static_cast<size_t>(size));
  }

  // Makes the two sockets inside and returns gRPC's, whose other end is called
  // `name`; -1 if the kernel has none left.
  FileDescriptor Open(const std::string& name) {
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                     ends.data()) != 0) {
      return FileDescriptor();
    }
    inside_ = FileDescriptor(ends[0]);
    FileDescriptor other(ends[1]);
    for (const int end : ends) {
      ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kRoomInside,
                   sizeof kRoomInside);
    }
    sockaddr_un own = {};
    own.sun_family = AF_UNIX;
    // A name that begins with a zero is no file.
    name.copy(own.sun_path + 1, sizeof own.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + name.size());
    if (::bind(ends[0], reinterpret_cast<const sockaddr*>(&own), size) != 0) {
      return FileDescriptor();
    }
    return other;
  }

  // Carries bytes both ways, as many as the sockets take or a turn allows.
  Step Carry(std::vector<char>& scratch) {
    const bool more_in = CarryIn(scratch);
    const Step out = CarryOut(scratch);
    return out == Step::kWaits && more_in ? Step::kMore : out;
  }

 private:
  bool Blocked(int result) const {
    const int error = SSL_get_error(tls_.get(), result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  // Returns whether there is more to carry at once.
  bool CarryIn(std::vector<char>& scratch) {
    for (size_t turn = 0; turn < kTurn;) {
      if (!Deliver(std::exchange(received_, {}))) return false;
      if (ended_) {
        // gRPC learns that the other end has gone, and then closes its own.
        ::shutdown(inside_.get(), SHUT_WR);
        return false;
      }
      size_t size = 0;
      bool blocked = false;
      while (size < kBlock && !ended_ && !blocked) {
        ERR_clear_error();
        const int n = SSL_read(tls_.get(), scratch.data() + size,
                               static_cast<int>(kBlock - size));
        if (n > 0) {
          size += static_cast<size_t>(n);
        } else {
          blocked = Blocked(n);
          ended_ = !blocked;
        }
      }
      turn += size;
      if (!Deliver({scratch.data(), size}) || blocked) return false;
    }
    return true;
  }

  // Returns false if gRPC does not take all of it now; `received_` has the
  // rest.
  bool Deliver(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(inside_.get(), bytes.data(), bytes.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) {
        if (errno == EINTR) continue;
        // gRPC has closed its end: nobody wants them.
        received_ = WouldBlock() ? std::string(bytes) : "";
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  Step CarryOut(std::vector<char>& scratch) {
    for (size_t turn = 0;;) {
      // Reading makes TLS answer sometimes, and what it makes must not stay.
      if (!Flush()) return Step::kOver;
      if (!unsent_.empty()) return Step::kWaits;
      if (turn >= kTurn) return Step::kMore;
      const ssize_t n =
          ::recv(inside_.get(), scratch.data(), kBlock, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && WouldBlock()) return Step::kWaits;
      ERR_clear_error();
      if (n <= 0) {
        // The other end can tell this end from a loss.
        SSL_shutdown(tls_.get());
        Flush();
        return Step::kOver;
      }
      turn += static_cast<size_t>(n);
      if (SSL_write(tls_.get(), scratch.data(), static_cast<int>(n)) != n) {
        return Step::kOver;
      }
    }
  }

  // Sends what TLS has made.  Returns false if the connection is lost;
  // `unsent_` has what the socket does not take yet.
  bool Flush() {
    char* made = nullptr;
    const long size = BIO_get_mem_data(encrypted_, &made);
    absl::string_view bytes(made, static_cast<size_t>(size));
    if (!unsent_.empty()) {
      unsent_.append(bytes.data(), bytes.size());
      bytes = unsent_;
    }
    bool good = true;
    while (!bytes.empty() && good) {
      const ssize_t n = ::send(outside_.get(), bytes.data(), bytes.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        if (WouldBlock()) break;
        good = false;
      }
    }
    unsent_ = std::string(bytes);
    if (size > 0) BIO_reset(encrypted_);
    return good;
  }

  const FileDescriptor outside_;
  const TlsPtr tls_;
  BIO* const encrypted_;
  FileDescriptor inside_;
  std::string received_, unsent_;  // what the other side does not take yet
  bool ended_ = false;             // nothing more comes from outside
};

void ShownCertificates::Add(uint64_t connection, std::string pem) {
  MutexLock lock(&mu_);
  certificates_.insert_or_assign(connection, std::move(pem));
}

void ShownCertificates::Remove(uint64_t connection) {
  MutexLock lock(&mu_);
  certificates_.erase(connection);
}

absl::StatusOr<std::string> ShownCertificates::Of(
    absl::string_view peer) const {
  const std::optional<uint64_t> connection = NumberBehindGate(peer);
  MutexLock lock(&mu_);
  const auto it = connection.has_value() ? certificates_.find(*connection)
                                         : certificates_.end();
  if (it == certificates_.end()) {
    return absl::UnavailableError("the connection has ended");
  }
  return it->second;
}

TlsGate::TlsGate(std::shared_ptr<CertificateFolder> folder,
                 std::shared_ptr<ShownCertificates> shown,
                 ServerSockets sockets, absl::Duration patience,
                 grpc::ServerBuilder* builder)
    : sockets_(std::move(sockets)),
      patience_(patience),
      context_(std::make_unique<Context>(std::move(folder))),
      shown_(std::move(shown)),
      server_(builder->experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::
              FROM_FD,
          grpc::InsecureServerCredentials())),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      scratch_(kBlock) {
  Watch(wake_.get(), EPOLLIN, kWakes);
}

TlsGate::~TlsGate() {
  ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void TlsGate::Watch(int fd, uint32_t events, uint64_t name) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = name;
  // What cannot be watched gets no event, and ends at its deadline.
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

int TlsGate::Listen(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return 0;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port)) return 0;
  // Every address of this machine is that of IPv6 and of IPv4, as gRPC has it.
  if (host == "0.0.0.0" || host == "::") {
    for (const char* all : {"::", "0.0.0.0"}) {
      if (const int got = ListenOn(all, port); got != 0) return got;
    }
    return 0;
  }
  return ListenOn(host, port);
}

int TlsGate::ListenOn(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found) !=
      0) {
    return 0;
  }
  const std::unique_ptr<addrinfo, Free<::freeaddrinfo>> all(found);
  std::vector<FileDescriptor> listeners;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    FileDescriptor listener(
        ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int fd = listener.get();
    const int on = 1, off = 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_storage own = {};
    std::memcpy(&own, a->ai_addr, a->ai_addrlen);
    // All addresses of a name get the port that the first one has got.
    auto& field = own.ss_family == AF_INET6
                      ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                      : reinterpret_cast<sockaddr_in&>(own).sin_port;
    field = htons(static_cast<uint16_t>(port));
    auto* const name = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = a->ai_addrlen;
    sockets_.OnListener(fd);
    if (fd < 0 || ::bind(fd, name, size) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
        ::getsockname(fd, name, &size) != 0) {
      // A machine without IPv6 may still have the name.
      if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) continue;
      return 0;
    }
    port = ntohs(field);
    listeners.push_back(std::move(listener));
  }
  if (listeners.empty()) return 0;
  for (FileDescriptor& listener : listeners) {
    Watch(listener.get(), EPOLLIN, NameOfListener(listener.get()));
    listeners_.push_back(std::move(listener));
  }
  thread_ = std::thread([this] { Run(); });
  return port;
}

void TlsGate::Run() {
  absl::Time end = absl::InfiniteFuture();
  std::array<epoll_event, 64> events;
  while (SteadyNow() < end && (!stopped_ || !relays_.empty())) {
    const absl::Duration limit = unfinished_.empty()
                                     ? std::min(EndOverdue(), end - SteadyNow())
                                     : absl::ZeroDuration();
    const int n =
        ::epoll_wait(poll_.get(), events.data(),
                     static_cast<int>(events.size()), Milliseconds(limit));
    for (const uint64_t name : std::exchange(unfinished_, {})) Advance(name);
    for (int i = 0; i < n; ++i) {
      const uint64_t name = events[i].data.u64;
      if (name == kWakes) {
        end = SteadyNow() + kLastFlush;
        Stop();
      } else if ((name & kListens) != 0) {
        Accept(static_cast<int>(name & ~kListens));
      } else {
        const bool closed =
            (name & kInside) != 0 && (events[i].events & EPOLLHUP) != 0;
        // Otherwise an end that does not read would keep what gRPC has left.
        if (closed) SetDeadline(name & ~kInside, patience_);
        Advance(name & ~kInside);
      }
    }
  }
  while (!relays_.empty()) Drop(relays_.begin()->first);
}

void TlsGate::Stop() {
  stopped_ = true;
  for (const FileDescriptor& all : listeners_) {
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, all.get(), nullptr);
  }
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, wake_.get(), nullptr);
  for (auto it = relays_.begin(); it != relays_.end();) {
    const auto& [name, relay] = *it++;
    if (relay->inside() < 0) Drop(name);
  }
}

void TlsGate::Accept(int listener) {
  for (int i = 0; i < kAcceptTurn; ++i) {
    FileDescriptor socket(
        ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (!WouldBlock()) {
        // No descriptor is left: the connection goes on waiting.
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, listener, nullptr);
        deadlines_.emplace(SteadyNow() + kRestTime, NameOfListener(listener));
      }
      return;
    }
    const int fd = socket.get();
    if (!sockets_.OnAccepted(fd)) continue;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_CTX* const context = context_->Get();
    TlsPtr tls(context == nullptr ? nullptr : SSL_new(context));
    const std::optional<uint64_t> name = CookieOf(fd);
    if (tls == nullptr || !name.has_value()) continue;
    relays_.try_emplace(
        *name, std::make_unique<Relay>(std::move(socket), std::move(tls),
                                       context_->encrypted()));
    SetDeadline(*name, patience_);
    Watch(fd, EPOLLIN | EPOLLOUT | EPOLLET, *name);
  }
}

void TlsGate::Advance(uint64_t name) {
  const auto it = relays_.find(name);
  if (it == relays_.end()) return;
  Relay& relay = *it->second;
  // A relay that has just ended must leave nothing for another connection.
  BIO_reset(context_->encrypted());
  Relay::Step step = Relay::Step::kMore;
  if (relay.inside() >= 0) {
    step = relay.Carry(scratch_);
  } else if (step = relay.Shake(); step == Relay::Step::kMore) {
    step = HandOver(name, relay) ? Relay::Step::kWaits : Relay::Step::kOver;
  }
  if (step == Relay::Step::kMore) unfinished_.push_back(name);
  if (step == Relay::Step::kOver) Drop(name);
}

bool TlsGate::HandOver(uint64_t name, Relay& relay) {
  std::string certificate = relay.Certificate();
  const std::string address = OtherEndOf(relay.outside()).address;
  if (certificate.empty() || address.empty()) return false;
  FileDescriptor server = relay.Open(NameBehindGate(name, address));
  if (server.get() < 0) return false;
  SetDeadline(name, absl::InfiniteDuration());
  // It can be written to, so that an event comes at once, and the bytes that
  // came with the handshake go on.
  Watch(relay.inside(), EPOLLIN | EPOLLOUT | EPOLLET, name | kInside);
  shown_->Add(name, std::move(certificate));
  ++handed_;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters p;
  p.fd = server.Release();
  server_->HandleNewConnection(&p);
  return true;
}

void TlsGate::SetDeadline(uint64_t name, absl::Duration limit) {
  const auto it = relays_.find(name);
  if (it == relays_.end()) return;
  absl::Time& deadline = it->second->deadline;
  deadlines_.erase({deadline, name});
  deadline = SteadyNow() + limit;
  if (limit != absl::InfiniteDuration()) deadlines_.emplace(deadline, name);
}

absl::Duration TlsGate::EndOverdue() {
  for (;;) {
    if (deadlines_.empty()) return absl::InfiniteDuration();
    const auto [when, name] = *deadlines_.begin();
    const absl::Duration left = when - SteadyNow();
    if (left > absl::ZeroDuration()) return left;
    deadlines_.erase(deadlines_.begin());
    if ((name & kListens) != 0) {
      if (!stopped_) Watch(static_cast<int>(name & ~kListens), EPOLLIN, name);
    } else {
      Drop(name);
    }
  }
}

void TlsGate::Drop(uint64_t name) {
  SetDeadline(name, absl::InfiniteDuration());
  relays_.erase(name);
  shown_->Remove(name);
}

}  // namespace gossamer
