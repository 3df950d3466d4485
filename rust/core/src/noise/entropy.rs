//! Where randomness comes from, and which randomness may touch private data.
//!
//! Types that can't be mistaken for one another:
//!
//! * [`SecureRng`]: ChaCha20 under a fresh key from the operating system. Made for one kernel call and
//!   dropped with it, so no state exists that a forked process could inherit and repeat.
//! * [`predictable::SeededNoise`]: deterministic, for tests and seeded simulations; whatever is drawn from it
//!   has no privacy at all.
//! * [`SimulationRng`](crate::research::simulate::words::SimulationRng): for environments (contexts, rewards). It is
//!   *not* a [`NoiseSource`], so a mechanism that was handed one does not compile.
//!
//! The samplers are exact given uniform bits. The bits are those of ChaCha20, so the guarantee is
//! computational. Timing is not protected.

use std::fmt::Display;

use rand::rngs::{ChaCha20Rng, SysRng};
use rand::{Rng, SeedableRng, TryRng};

use crate::runtime::error::{Error, Result};

mod sealed {
    pub trait Sealed {}
}

/// Uniform bits for a privacy mechanism. Sealed: no other crate can add a source.
pub trait NoiseSource: sealed::Sealed {
    /// Whether nobody can repeat the bits: of [`SecureRng`] alone.
    const SECURE: bool = false;

    /// The next 64 uniform bits.
    fn next_u64(&mut self) -> u64;

    /// Fills `words` with what as many calls of [`next_u64`](Self::next_u64) would have returned, but faster.
    fn fill(&mut self, words: &mut [u64]);

    /// Called before the noise of each release, after foreign code may have run: a source for releases takes
    /// a fresh key, so that no two processes go on with the same one. A predictable source goes on.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system has no key to give.
    fn renew(&mut self) -> Result<()>;
}

/// Words that [`fill`] moves at once; ChaCha20 makes 32 of them a refill.
const FILL_WORDS: usize = 32;

fn fill(rng: &mut ChaCha20Rng, words: &mut [u64]) {
    let mut bytes = [0u8; 8 * FILL_WORDS];
    for chunk in words.chunks_mut(FILL_WORDS) {
        let bytes = &mut bytes[..8 * chunk.len()];
        rng.fill_bytes(bytes);
        for (word, raw) in chunk.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*raw);
        }
    }
}

/// The only generator for releases: ChaCha20 keyed by the operating system.
///
/// Neither `Clone` nor seedable: two copies would draw the same noise twice.
pub struct SecureRng(ChaCha20Rng);

impl SecureRng {
    /// Takes a fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system has none to give. There is no fallback.
    pub fn from_os() -> Result<Self> {
        Self::from_source(&mut SysRng)
    }

    /// Private, so that only [`from_os`](Self::from_os) and the test of entropy failure can choose the
    /// source.
    fn from_source<S>(source: &mut S) -> Result<Self>
    where
        S: TryRng<Error: Display>,
    {
        let mut key = [0u8; 32];
        source.try_fill_bytes(&mut key).map_err(|failure| Error::Entropy(failure.to_string()))?;
        Ok(SecureRng(ChaCha20Rng::from_seed(key)))
    }
}

impl sealed::Sealed for SecureRng {}

impl NoiseSource for SecureRng {
    const SECURE: bool = true;

    #[inline]
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    #[inline]
    fn fill(&mut self, words: &mut [u64]) {
        fill(&mut self.0, words);
    }

    fn renew(&mut self) -> Result<()> {
        *self = Self::from_os()?;
        Ok(())
    }
}

/// Noise that anyone can predict: for tests and seeded simulations. Not part of the public interface.
#[doc(hidden)]
pub mod predictable {
    use super::{ChaCha20Rng, NoiseSource, Result, Rng, SeedableRng, fill, sealed};

    /// Keeps these streams apart from any other use of the same seed. The bytes are part of every pinned stream.
    const DOMAIN: &[u8; 24] = b"fliphat door: not secret";

    /// Deterministic noise for tests and seeded simulations: **no privacy**.
    pub struct SeededNoise {
        rng: ChaCha20Rng,
        words_drawn: u64,
    }

    impl SeededNoise {
        /// Stream number `stream` of `seed`; streams never overlap.
        pub fn new(seed: u64, stream: u64) -> Self {
            let mut key = [0u8; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..].copy_from_slice(DOMAIN);
            let mut rng = ChaCha20Rng::from_seed(key);
            rng.set_stream(stream);
            SeededNoise { rng, words_drawn: 0 }
        }

        /// How many 64-bit words were taken so far: tests compare two samplers on one stream by it.
        pub fn words_drawn(&self) -> u64 {
            self.words_drawn
        }
    }

    impl sealed::Sealed for SeededNoise {}

    impl NoiseSource for SeededNoise {
        #[inline]
        fn next_u64(&mut self) -> u64 {
            self.words_drawn += 1;
            self.rng.next_u64()
        }

        #[inline]
        fn fill(&mut self, words: &mut [u64]) {
            self.words_drawn += words.len() as u64;
            fill(&mut self.rng, words);
        }

        fn renew(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// A broken source, which an audit must catch: every release repeats the same noise.
    pub struct RepeatedNoise {
        seed: u64,
        noise: SeededNoise,
    }

    impl RepeatedNoise {
        /// Stream 0 of `seed`, from its start for each release.
        pub fn new(seed: u64) -> Self {
            RepeatedNoise { seed, noise: SeededNoise::new(seed, 0) }
        }
    }

    impl sealed::Sealed for RepeatedNoise {}

    impl NoiseSource for RepeatedNoise {
        fn next_u64(&mut self) -> u64 {
            self.noise.next_u64()
        }

        fn fill(&mut self, words: &mut [u64]) {
            self.noise.fill(words);
        }

        fn renew(&mut self) -> Result<()> {
            self.noise = SeededNoise::new(self.seed, 0);
            Ok(())
        }
    }

    /// Replays given words, then zeros: reaches corners that no seed would.
    #[cfg(test)]
    pub(crate) struct ScriptedNoise {
        words: std::vec::IntoIter<u64>,
        pub(crate) words_drawn: u64,
    }

    #[cfg(test)]
    impl ScriptedNoise {
        pub(crate) fn new(words: Vec<u64>) -> Self {
            ScriptedNoise { words: words.into_iter(), words_drawn: 0 }
        }
    }

    #[cfg(test)]
    impl sealed::Sealed for ScriptedNoise {}

    #[cfg(test)]
    impl NoiseSource for ScriptedNoise {
        fn next_u64(&mut self) -> u64 {
            self.words_drawn += 1;
            self.words.next().unwrap_or(0)
        }

        fn fill(&mut self, words: &mut [u64]) {
            words.fill_with(|| self.next_u64());
        }

        fn renew(&mut self) -> Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::predictable::{RepeatedNoise, SeededNoise};
    use super::*;

    struct NoEntropy;

    impl TryRng for NoEntropy {
        type Error = std::fmt::Error;

        fn try_next_u32(&mut self) -> std::result::Result<u32, Self::Error> {
            Err(std::fmt::Error)
        }

        fn try_next_u64(&mut self) -> std::result::Result<u64, Self::Error> {
            Err(std::fmt::Error)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Self::Error> {
            // Half a key must not be enough.
            bytes[..16].fill(7);
            Err(std::fmt::Error)
        }
    }

    #[test]
    fn entropy_failure_is_an_error_and_never_a_fallback() {
        let failure = SecureRng::from_source(&mut NoEntropy).err().expect("no entropy, no generator");
        assert!(matches!(failure, Error::Entropy(_)));
        assert!(failure.to_string().contains("entropy source failed"));
    }

    /// Gives these bytes, and no more.
    struct Given([u8; 32]);

    impl TryRng for Given {
        type Error = std::fmt::Error;

        fn try_next_u32(&mut self) -> std::result::Result<u32, Self::Error> {
            Err(std::fmt::Error)
        }

        fn try_next_u64(&mut self) -> std::result::Result<u64, Self::Error> {
            Err(std::fmt::Error)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Self::Error> {
            let given = self.0.get(..bytes.len()).ok_or(std::fmt::Error)?;
            bytes.copy_from_slice(given);
            Ok(())
        }
    }

    #[test]
    fn all_256_bits_of_a_key_come_from_the_source() {
        let first = |bytes| SecureRng::from_source(&mut Given(bytes)).expect("32 bytes").next_u64();
        let plain = [7; 32];
        let mut draws = std::collections::HashSet::from([first(plain)]);
        for bit in 0..256 {
            let mut other = plain;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(draws.insert(first(other)), "bit {bit} of the key is not used");
        }
    }

    #[test]
    fn every_secure_generator_has_its_own_key() {
        let first = |mut rng: SecureRng| rng.next_u64();
        let draws: std::collections::HashSet<u64> =
            (0..1000).map(|_| first(SecureRng::from_os().expect("entropy"))).collect();
        assert_eq!(draws.len(), 1000);
    }

    #[test]
    fn renewing_changes_the_secure_key_and_repeats_only_the_broken_source() {
        let mut secure = SecureRng::from_os().expect("entropy");
        let draws: std::collections::HashSet<u64> = (0..1000)
            .map(|_| {
                secure.renew().expect("entropy");
                secure.next_u64()
            })
            .collect();
        assert_eq!(draws.len(), 1000);
        let (mut seeded, mut repeated) = (SeededNoise::new(5, 0), RepeatedNoise::new(5));
        let first = seeded.next_u64();
        for _ in 0..3 {
            repeated.renew().expect("no key needed");
            assert_eq!(repeated.next_u64(), first);
        }
        seeded.renew().expect("no key needed");
        assert_ne!(seeded.next_u64(), first);
    }

    #[test]
    fn filling_and_drawing_one_by_one_read_the_same_stream() {
        for length in [0, 1, 31, 32, 33, 100] {
            let (mut filled, mut drawn) = (SeededNoise::new(1, 2), SeededNoise::new(1, 2));
            assert_eq!(filled.next_u64(), drawn.next_u64());
            let mut words = vec![0; length];
            filled.fill(&mut words);
            assert!(words.iter().all(|&word| word == drawn.next_u64()));
            assert_eq!(filled.next_u64(), drawn.next_u64());
            assert_eq!(filled.words_drawn(), drawn.words_drawn());
        }
    }

    #[test]
    fn seeded_streams_are_pinned() {
        // Seeded experiments depend on these: a change here is a value-breaking changelog entry.
        let firsts = [SeededNoise::new(1, 0).next_u64(), SeededNoise::new(1, 1).next_u64()];
        assert_eq!(firsts, [16896319652922222577, 15990840047989349805]);
    }
}
