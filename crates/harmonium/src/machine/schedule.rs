//! Which layers can be updated at the same time.

use super::{LayerId, Machine};

impl Machine {
    /// Blocks of layers that do not see each other.
    ///
    /// A greedy colouring of the graph of layers. Layers are taken neighbour after neighbour,
    /// which gives two blocks to every graph that admits two (so to every chain and tree),
    /// however its layers are numbered. A lateral coupling does not split a layer here: its units
    /// are visited one by one inside the block.
    pub fn schedule(&self) -> Vec<Vec<LayerId>> {
        let mut blocks: Vec<Vec<LayerId>> = Vec::new();
        for l in self.connected_order() {
            let uncoupled = |block: &&mut Vec<LayerId>| block.iter().all(|&m| !self.coupled(l, m));
            match blocks.iter_mut().find(uncoupled) {
                Some(block) => block.push(l),
                None => blocks.push(vec![l]),
            }
        }
        blocks
    }

    /// All layers, each after one it is coupled with, if there is one.
    fn connected_order(&self) -> Vec<LayerId> {
        let mut order: Vec<LayerId> = Vec::new();
        for start in self.layer_ids() {
            let mut frontier = vec![start];
            while let Some(l) = frontier.pop() {
                if !order.contains(&l) {
                    order.push(l);
                    frontier.extend(self.layer_ids().rev().filter(|&m| self.coupled(l, m)));
                }
            }
        }
        order
    }
}
